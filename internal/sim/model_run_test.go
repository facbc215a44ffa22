package sim

import (
	"fmt"
	"hash"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/inside"
	"github.com/resilient-go/limiter/remote"
)

// A schedule is a plan under way.
type schedule struct {
	*plan
	w     *World
	fleet []*member // by slot; nil where nobody runs
	all   []*member // also those that are gone
	books *books
	root  *rootCheck
	rich  *wealth
	diary *diary // nil unless somebody reads it

	allRest  bool // the load leaves everybody alone
	limitNow hybrid.Limit
	version  int64
	onGrant  func(*Post, remote.Answer) // of the fault that waits for a grant
	longest  time.Duration              // lease granted so far
	quiet    time.Duration              // when the last fault was over
	healed   bool                       // all faults are over, and forgotten
	sum      hash.Hash64                // of everything that was decided

	faults []string // what is wrong, at most a few
	seen   map[string]int
	use    float64 // of the limit, under overload
}

// A member is an instance in a schedule.
type member struct {
	*Instance
	name     int
	open     int               // requests without a decision
	waiting  int               // tokens that patient ones of them ask for
	tally    map[string]uint64 // decisions by source, those refused with an R
	degraded []entry
	shared   []entry
	resting  bool          // the load leaves it alone
	last     time.Duration // when a script last answered it, while it had a rate
}

const modelKey = "key"

func newSchedule(p *plan, diary *diary) *schedule {
	own := *p
	s := &schedule{
		plan: &own, w: New(p.seed), fleet: make([]*member, p.instances), books: newBooks(p.limit),
		diary: diary, limitNow: p.limit, sum: fnv.New64a(), seen: map[string]int{},
	}
	s.root, s.rich = &rootCheck{s: s}, newWealth(s)
	if diary != nil {
		diary.w = s.w
	}
	s.w.MostEvents = 2_000_000
	s.w.Network.RTT, s.w.Network.Jitter = p.rtt, p.jitter
	s.w.Scripted = s.scripted
	s.w.Landed = s.landed
	s.w.Posted = func(p *Post) { s.rich.flying[p] = true }
	s.w.Losing = func(p *Post) {
		delete(s.rich.flying, p)
		s.diary.post(p, nil)
	}
	return s
}

// play plays the plan to its end.
func (s *schedule) play() {
	drifts := stream(s.seed, drift)
	for slot := range s.fleet {
		s.start(slot, s.anyDrift(drifts))
	}
	s.load()
	for _, kind := range s.kinds {
		faults[kind](s, stream(s.seed, kind))
	}
	s.w.Run(s.chaos)
	s.mend()
	s.live(stream(s.seed, "after"))
	if s.w.Ended() {
		s.wrong("it goes round in circles")
	}
	s.books.longest = s.longest
	s.audit()
}

func (s *schedule) wrong(format string, args ...any) {
	if len(s.faults) < 5 {
		s.faults = append(s.faults, fmt.Sprintf("%v: ", s.w.Now())+fmt.Sprintf(format, args...))
	}
}

func (s *schedule) anyDrift(rnd *rand.Rand) float64 {
	switch {
	case !s.has(drift):
		return 0
	case s.seed%3 == 0: // all are fast
		return 0.1
	}
	return oneOf(rnd, -0.1, 0.1, -0.1+0.2*rnd.Float64())
}

// start puts a new instance into a slot.
func (s *schedule) start(slot int, drift float64) {
	options := []hybrid.Option{
		hybrid.WithName("model"), hybrid.WithExpectedInstances(s.instances), hybrid.WithHeadroom(s.headroom),
		hybrid.WithLeaseHorizon(s.horizon), hybrid.WithLocalShare(s.share), hybrid.WithLimitVersion(s.version),
	}
	i, err := s.w.Start(s.limitNow, s.timeout, options...)
	if err != nil {
		panic(err) // the plan is wrong
	}
	i.Drift = drift
	m := &member{Instance: i, name: len(s.all), tally: map[string]uint64{}}
	s.fleet[slot] = m
	s.all = append(s.all, m)
	s.diary.note("instance %d starts in slot %d, drift %.3f", m.name, slot, drift)
}

func (s *schedule) kill(slot int) {
	if m := s.fleet[slot]; m != nil {
		m.Kill()
		s.fleet[slot] = nil
		s.diary.note("instance %d dies", m.name)
	}
}

// of is the member that an instance is.
func (s *schedule) of(i *Instance) *member {
	for _, m := range s.all {
		if m.Instance == i {
			return m
		}
	}
	panic("an instance of another world")
}

// ask sends a request to a slot and enters the decision into the books.
func (s *schedule) ask(slot, n int, patient bool, served func(inside.Decision)) {
	m := s.fleet[slot]
	if m == nil {
		return
	}
	m.open++
	if patient {
		m.waiting += n
	}
	decided := false
	m.Ask(modelKey, n, patient, func(d inside.Decision) {
		if decided {
			s.wrong("instance %d: a request was decided twice", m.name)
		}
		decided = true
		m.open--
		if patient {
			m.waiting -= n
		}
		s.decided(m, int64(n), patient, d)
		if served != nil {
			served(d)
		}
	})
}

func (s *schedule) decided(m *member, n int64, patient bool, d inside.Decision) {
	at := s.w.Now()
	_, _ = fmt.Fprintln(s.sum, at, m.name, n, d.Allowed, d.Source, d.RetryAfter, d.Err)
	s.diary.decision(m, n, patient, d)
	switch {
	case d.Err != nil:
		if int64(s.limitNow.Burst()) >= n && !s.has(limits) {
			s.wrong("instance %d: a request of %d: %v", m.name, n, d.Err)
		}
		return
	case !d.Allowed:
		m.tally["R"+d.Source]++
		if d.RetryAfter <= 0 || patient || d.Source == "lease" {
			s.wrong("instance %d: impossible refusal %+v, patient: %v", m.name, d, patient)
		}
		s.seen["refused"]++
		return
	}
	switch d.Source {
	case "lease":
		s.books.pay(at, n)
		m.shared = append(m.shared, entry{time.Duration(m.Now()), n})
	case "redis": // Redis charged it when the script ran
		s.books.pay(m.Ran(), n)
		m.shared = append(m.shared, entry{time.Duration(m.Now()), n})
	case "degraded":
		m.degraded = append(m.degraded, entry{time.Duration(m.Now()), n})
		if s.healed {
			s.wrong("instance %d is still degraded", m.name)
		}
	default:
		s.wrong("instance %d: admitted by %q", m.name, d.Source)
	}
	m.tally[d.Source]++
	s.seen[d.Source]++
}

// scripted is told each script that has run.
func (s *schedule) scripted(p *Post) {
	_, _ = fmt.Fprintln(s.sum, s.w.Now(), p.Reply, p.Err)
	s.diary.post(p, nil)
	if p.Err != nil {
		s.wrong("a script failed: %v", p.Err)
		return
	}
	s.root.check(p)
}

// landed is told each answer that has reached its instance.
func (s *schedule) landed(p *Post, a remote.Answer, err error) {
	delete(s.rich.flying, p)
	s.diary.post(p, err)
	if err == nil && p.Lost == "" && s.onGrant != nil && (a.Lump > 0 || a.Rate > 0) {
		s.onGrant(p, a)
	}
}
