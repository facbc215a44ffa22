package hybrid

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/resilient-go/limiter/local"
)

// A standing is a refusal of one token that holds until an instant, so that a
// flood of refused requests takes no lock. Whoever changes something under mu that
// could let a request pass withdraws it; what time alone changes bounds it. It
// never changes.
type standing struct {
	until int64 // instant
	due   int64 // instant at which the same request can pass
	up    bool  // whether Redis could be asked: it says nothing about the other case
	res   Result
	count *atomic.Uint64
	left  *atomic.Uint64 // nil: the key counts, and is asked later
}

// holds reports whether the refusal still stands.
func (s *standing) holds(l *Limiter, e *entry, now int64) bool {
	return now < s.until && s.up == l.up(e)
}

// tell refuses and counts that.
func (s *standing) tell(res *Result, now int64) {
	s.count.Add(1)
	if s.left != nil {
		s.left.Add(1)
	}
	res.Source = s.res.Source
	res.Limit = s.res.Limit
	res.RetryAfter = time.Duration(max(1, s.due-now))
	res.ResetAfter = s.res.ResetAfter
}

// stand lets a refusal of one token stand. mu is held, no message is under way
// and nobody waits.
func (l *Limiter) stand(e *entry, s step, k kind, now int64) {
	until := now + int64(l.cfg.horizon)
	if e.rules != nil { // whoever names limits by key wants to be asked
		until = min(until, e.rules.asked.Load()+int64(l.cfg.horizon))
	}
	up := l.up(e)
	switch held := e.lease.Rights(now); {
	case s.res.Source == SourceDenied && e.lease.Rate() > 0:
		until = min(until, now+int64(s.wake), e.lease.Opens())
		if e.plenty() {
			until = min(until, max(e.silence(k), e.rootHasAt(1+l.atRoot(e, k))))
		}
	case held > 0 && (k&low == 0 || e.lease.Rate() > 0):
		return
	case s.res.Source == SourceDenied:
		until = min(until, e.silence(k))
		if e.rivals <= 1 {
			until = min(until, e.rootHasAt(1+l.atRoot(e, k)))
		}
	case s.res.Source == SourcePrefilter:
		until = min(until, now+int64(s.wake))
	case s.res.Source == SourceDegraded && !up && l.cfg.policy == Share:
		until = min(until, now+int64(s.wake))
	default:
		return
	}
	if until <= now || s.res.Remaining > 0 && k&low == 0 {
		return
	}
	if k&low != 0 {
		tenths := &l.counts.left[leftTenths(int64(s.res.Remaining), e.force().burst)]
		count := l.counter(e, s.res.Source, false)
		e.lowStanding.Store(&standing{until: until, due: now + int64(s.res.RetryAfter), up: up, res: s.res, count: count, left: tenths})
		return
	}
	count, left := l.counter(e, s.res.Source, false), &l.counts.left[0]
	switch s.res.Source {
	case SourcePrefilter:
		count, left = &e.prefiltered, nil
	case SourceDenied:
		count, left = &e.denied, nil
	default:
	}
	e.standing.Store(&standing{until: until, due: now + int64(s.res.RetryAfter), up: up, res: s.res, count: count, left: left})
}

// withdraw ends a refusal that stands. mu is held.
func (e *entry) withdraw() {
	if e.standing.Load() != nil {
		e.standing.Store(nil)
	}
	if e.lowStanding.Load() != nil {
		e.lowStanding.Store(nil)
	}
}

// rootHasAt is an instant before which rootHas says no to n tokens.
func (e *entry) rootHasAt(n int64) int64 {
	if e.force().timed {
		if at, known := e.root.notBefore(n); known {
			return at
		}
		return math.MinInt64
	}
	if t := e.force(); t.tiers != nil {
		if !e.root.known || n*local.Unit <= e.root.tokens {
			return math.MinInt64
		}
		return e.root.at + int64(t.tiersTurn(&e.root, n, e.root.at))
	}
	perNano := (e.force().rate.PerSecond()*local.Unit - float64(e.root.rates)) / 1e9
	missing := float64(n*local.Unit - e.root.tokens)
	switch {
	case !e.root.known || missing <= 0:
		return math.MinInt64
	case perNano <= 0:
		return math.MaxInt64
	default:
		return e.root.at + int64(math.Min(missing/perNano, math.MaxInt64/4))
	}
}

// fold takes in what was refused without the lock: it is demand. mu is held.
func (l *Limiter) fold(e *entry) {
	n := e.turned() - e.noted
	e.noted += n
	e.asked += n
	e.calls += n
	l.counts.left.observe(uint64(n), 0, e.force().burst)
}

// turned is how many requests were refused without the lock.
func (e *entry) turned() int64 { return int64(e.denied.Load() + e.prefiltered.Load()) }
