package sim

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/inside"
)

// live checks that the fleet works when all faults are over: after a settling time
// nobody is degraded, under overload the limit is used, below the limit those who
// wait are served, and nobody is forgotten.
func (s *schedule) live(rnd *rand.Rand) {
	s.settle(rnd)
	s.overload(rnd)
	s.patience(rnd)
	// Whoever still waits is served, and whoever does not has been answered.
	s.w.Run(s.w.Now() + 3*s.longest + 2*time.Second + s.worth(2*s.limitNow.Burst()))
	for _, m := range s.fleet {
		if m.open != 0 || m.Waiting() != 0 {
			s.wrong("instance %d has %d requests without a decision", m.name, m.open)
		}
		stats := m.Limiter.Stats()
		for source := hybrid.SourcePrefilter; source <= hybrid.SourceDegraded; source++ {
			a, r := m.tally[source.String()], m.tally["R"+source.String()]
			if stats.Allowed[source] != a || stats.Refused[source] != r {
				s.wrong("instance %d counts %d admitted and %d refused by %v, of %d and %d", m.name,
					stats.Allowed[source], stats.Refused[source], source, a, r)
			}
		}
	}
}

// worth is how long the rate takes for n tokens.
func (s *schedule) worth(n int) time.Duration {
	return time.Duration(float64(n) / ratePerSecond(s.limitNow) * 1e9)
}

// lastForever is the longest that a lease counts that was granted before the clock
// of Redis went back.
const lastForever = 30 * time.Second

// settle lets time pass under little load: until the breakers have probed, the
// leases of those who died have ended, the last limit is in use, debts are paid,
// and those who have waited are served.
func (s *schedule) settle(rnd *rand.Rand) {
	length := 3*time.Second + 2*s.longest
	if s.has(back) || s.has(older) {
		length += lastForever
	}
	if s.has(limits) {
		length += 2*s.longest + s.straggle()
	}
	owed := int(-min(0, s.rootNow().tokens))
	for _, m := range s.fleet {
		owed += m.waiting
	}
	length += s.worth(2 * owed)
	pause := max(length/60, 50*time.Millisecond)
	for at := s.w.Now(); at < s.w.Now()+length; at += pause {
		s.w.At(at+time.Duration(rnd.Int64N(int64(pause))), func() { s.ask(rnd.IntN(s.instances), 1, false, nil) })
	}
	s.w.Run(s.w.Now() + length)
	// What was admitted in an outage is charged when it is over.
	for debt := -s.rootNow().tokens; debt > 0; debt = -s.rootNow().tokens {
		s.w.Run(s.w.Now() + s.worth(2*int(debt)+2))
		s.ask(rnd.IntN(s.instances), 1, false, nil)
		s.w.Run(s.w.Now() + s.timeout)
	}
	s.healed = true
}

func (s *schedule) adopt() {
	s.usual = max(1, min(int(ratePerSecond(s.limitNow)/30), s.largestNow()/20))
	s.calls = ratePerSecond(s.limitNow) / float64(s.usual)
	horizon := min(8/(s.calls/float64(s.instances))*1e9, 5e9)
	s.lease = max(500*time.Millisecond, 5*max(s.horizon, time.Duration(horizon)))
}

func (s *schedule) largestNow() int { return max(1, int(s.share*float64(s.limitNow.Burst())+1e-9)) }

// overload sends twice the limit, and compares what is admitted with one bucket that
// decides each request by itself.
func (s *schedule) overload(rnd *rand.Rand) {
	s.adopt()
	part := math.Min(1, s.share*float64(s.instances))
	s.diary.note("overload")
	// What has gathered is used up first.
	size := max(1, min(s.largestNow(), s.limitNow.Burst()/25))
	reference := NewBucket(part*ratePerSecond(s.limitNow), part*float64(s.limitNow.Burst()))
	ask := func(slot, n int) {
		s.ask(slot, n, false, nil)
		reference.Take(s.w.Now(), int64(n))
	}
	for n := s.limitNow.Burst() * 3 / 2; n > 0; n -= size {
		ask(rnd.IntN(s.instances), size)
	}
	even := make([]float64, s.instances)
	for k := range even {
		even[k] = 1 / float64(s.instances)
	}
	length := max(s.lease, s.worth(60*s.usual))
	if s.has(drift) && s.lease < 2*time.Second { // what fast clocks gain adds up
		length = max(length, 5*s.lease)
	}
	begin := s.w.Now() + s.lease
	end := begin + length
	s.flood(rnd, s.w.Now(), end, 2*part, even, ask)
	s.w.Run(begin)
	before, referenceBefore := s.books.total, reference.Admitted
	s.w.Run(end)
	used, want := float64(s.books.total-before), float64(reference.Admitted-referenceBefore)
	s.use = used / want
	// Where a rate is too small to be shared, or an instance's part of the burst is
	// a few requests only, the root is full at times before somebody asks again.
	least := 0.9
	switch part := s.limitNow.Burst() / (s.instances * s.usual); {
	case s.share < 1, part < 3, ratePerSecond(s.limitNow)*s.horizon.Seconds() < 3:
		least = 0.5
	case part < 6:
		least = 0.7
	}
	if used < least*want-3*float64(s.usual)-1 {
		s.wrong("%.0f tokens were used in %v under overload, of %.0f", used, length, want)
	}
}

// flood plans random arrivals of one size.
func (s *schedule) flood(rnd *rand.Rand, from, to time.Duration, times float64, weights []float64, ask func(slot, n int)) {
	pick := newPicker(weights)
	for at := float64(from); ; {
		at += rnd.ExpFloat64() / (times * s.calls) * 1e9
		if at >= float64(to) {
			return
		}
		slot := pick.pick(rnd)
		s.w.At(time.Duration(at), func() { ask(slot, s.usual) })
	}
}

// patience has some wait for much below the limit: each is served within what is
// left of a lease, and the time that its tokens take beside the load.
func (s *schedule) patience(rnd *rand.Rand) {
	const load = 0.3
	even := make([]float64, s.instances)
	for k := range even {
		even[k] = 1 / float64(s.instances)
	}
	part := math.Min(1, s.share) // of the one who waits
	most := s.largestNow()
	if s.share < 1 {
		most = max(1, most/2) // the rights that it holds count against its share
	}
	n := min(most, s.usual*oneOf(rnd, 1, 10, 40))
	begin := s.w.Now() + s.lease
	served := false
	ask := func(slot, n int) {
		if !served {
			s.ask(slot, n, false, nil)
		}
	}
	s.flood(rnd, s.w.Now(), begin, load*part, even, ask)
	s.w.Run(begin)
	chance := float64(s.usual) * (2 + 3*math.Sqrt(load*float64(n)/float64(s.usual))) // of the load
	within := max(s.lease, s.longest) + s.horizon + 4*s.timeout +
		time.Duration((float64(n)+chance)/(ratePerSecond(s.limitNow)*part*(1-load))*1e9)
	s.flood(rnd, begin, begin+within, load*part, even, ask)
	slot := rnd.IntN(s.instances)
	s.diary.note("instance %d waits for %d", s.fleet[slot].name, n)
	s.ask(slot, n, true, func(inside.Decision) { served = true })
	s.w.Run(begin + within)
	if !served {
		s.wrong("instance %d has waited for %d tokens for %v under %.1f of the limit", s.fleet[slot].name, n, within, load)
	}
}
