package sim

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/remote"
)

// rootState is the root as it is stored.
type rootState struct {
	there                  bool
	tokens, out            float64 // tokens
	rates                  float64 // tokens per second
	burst                  float64 // tokens
	left                   time.Duration
	num, den, micro, stamp int64
	fields                 map[string]string
}

func (s *schedule) redisKey() string { return remote.Key("model", modelKey) }

func (s *schedule) redisMicros() int64 { return epoch.UnixMicro() + (s.w.now+int64(s.w.step))/1000 }

func (s *schedule) rootNow() rootState {
	f := s.w.Redis.Fields(s.redisKey())
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(f[name], 10, 64)
		return n
	}
	r := rootState{there: f != nil, fields: f, stamp: number("s")}
	if !r.there {
		return r
	}
	l := strings.Fields(f["l"])
	r.num, _ = strconv.ParseInt(l[1], 10, 64)
	r.den, _ = strconv.ParseInt(l[2], 10, 64)
	r.micro, _ = strconv.ParseInt(l[3], 10, 64)
	r.burst = float64(r.micro) / 1e6
	r.tokens, r.out, r.rates = float64(number("t"))/1e6, float64(number("o"))/1e6, float64(number("p"))/1e6
	r.left = time.Duration(max(0, number("x")-s.redisMicros())) * time.Microsecond
	return r
}

// given is what the root may give away when it forgets what it knows now: it fills
// up at once, and the rights that were out go on besides until their leases end,
// with their rates. Since tokens and rights out are the burst at most, what it
// fills up by is no less than the rights, and no window has both at once: one that
// begins before has the rights in its burst already, and one that begins later
// finds the root full.
func (r rootState) given() float64 {
	if !r.there {
		return 0 // it was full, and nothing was out
	}
	return math.Max(r.burst-r.tokens, r.out) + r.rates*r.left.Seconds()
}

// step puts the clock of Redis forward or back.
//
// A step forward by d is worth d of the rate at once. Leases end earlier by d at
// the root than at their holders, and for that long their rates are given twice.
// Both together are at most twice the rate for d, and never more than if all had
// been forgotten. A step back is worth nothing: the root waits for nothing, and
// ends its leases later than their holders do.
func (s *schedule) step(d time.Duration) {
	r := s.rootNow()
	if d > 0 && r.there {
		twice := 2 * float64(r.num) / float64(r.den) * d.Seconds()
		s.allow(math.Min(r.given(), twice), r.left)
	}
	s.diary.note("the clock of Redis steps by %v", d)
	s.w.StepRedis(d)
}

// allow enters an addition to the bound of all windows that overlap the time from
// now on of that length.
func (s *schedule) allow(tokens float64, lasts time.Duration) {
	s.rich.excuse(lasts)
	s.diary.note("up to %.3f tokens more until %v", tokens, s.w.Now()+lasts)
	s.books.allowed = append(s.books.allowed, allowance{s.w.Now(), s.w.Now() + lasts, tokens})
}

func (s *schedule) lose(rnd *rand.Rand) {
	s.times(rnd, 2, func() {
		r := s.rootNow()
		s.allow(r.given(), r.left)
		s.diary.note("Redis loses its data")
		s.w.Redis.Clear()
	})
}

// goBack puts an older state in place of what is there. That is worth no more than
// the loss of it: the older state keeps its own invariant, and what its leases had
// is not spent twice, since a holder has it only as far as it has it now.
func (s *schedule) goBack(rnd *rand.Rand) {
	s.times(rnd, 2, func() {
		put := s.w.Redis.Snapshot()
		s.diary.note("a copy is made")
		s.w.At(s.w.Now()+s.length(rnd), func() {
			if s.w.Now() >= s.chaos {
				return
			}
			r := s.rootNow()
			s.allow(r.given(), r.left)
			s.diary.note("the copy takes over")
			put()
			s.unsettle()
		})
	})
}

// otherLimits changes the limit on all instances, one after the other, with a
// higher version or without.
func (s *schedule) otherLimits(rnd *rand.Rand) {
	s.times(rnd, 2, func() {
		old := s.limitNow
		perMinute := min(max(1, float64(old.Count())*between(rnd, 0.2, 5)), 300_000)
		burst := min(max(math.Ceil(1/s.share), float64(old.Burst())*between(rnd, 0.2, 5), leastBurst(perMinute)), 5000)
		s.limitNow = hybrid.PerMinute(int(perMinute)).WithBurst(int(burst))
		version := int64(-1)
		if rnd.IntN(2) == 0 {
			s.version++
			version = s.version
		}
		s.diary.note("from now on the limit is %v (version %d)", s.limitNow, version)
		// The root counts the time since it was last asked by the new limit.
		if r := s.rootNow(); r.there {
			faster := ratePerSecond(s.limitNow) - float64(r.num)/float64(r.den)
			idle := float64(s.redisMicros()-r.stamp) / 1e6
			s.allow(math.Min(math.Max(0, faster*idle), burst), 0)
		}
		s.books.change(s.w.Now(), s.limitNow)
		s.unsettle()
		spread := oneOf(rnd, 0, s.length(rnd))
		for _, m := range s.fleet {
			if m != nil {
				s.w.At(s.w.Now()+time.Duration(float64(spread)*rnd.Float64()), func() { s.tell(m, version) })
			}
		}
		s.quiet = max(s.quiet, s.w.Now()+spread)
	})
}

func (s *schedule) tell(m *member, version int64) {
	limit := s.limitNow
	m.SetLimit(limit, version, func(err error) {
		if err != nil {
			s.wrong("instance %d: SetLimit(%v): %v", m.name, limit, err)
		}
		s.diary.note("instance %d is told %v", m.name, limit)
		s.unsettle()
	})
}

// limitEverywhere tells everybody the last limit again.
func (s *schedule) limitEverywhere() {
	if !s.has(limits) {
		return
	}
	s.version++
	for _, m := range s.fleet {
		s.tell(m, s.version)
	}
}

// unsettle notes that from now on an older limit may apply for a while: messages
// that are late may bring it, and it then stands for one lease more.
func (s *schedule) unsettle() {
	if s.has(limits) {
		s.books.settled = max(s.books.settled, s.w.Now()+s.straggle())
	}
}

// straggle is how long a message may be under way.
func (s *schedule) straggle() time.Duration {
	d := s.rtt + 2*s.jitter
	if s.has(late) {
		d += 2 * 3 * s.lease
	}
	if s.has(freezes) {
		d += 2 * s.lease
	}
	return d
}
