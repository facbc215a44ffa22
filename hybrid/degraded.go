package hybrid

import (
	"math"
	"sync"
	"time"

	"github.com/resilient-go/limiter/local"
)

// quotaShape is the fair part of one instance in an outage.
type quotaShape struct {
	perSecond float64
	burst     int64
	part      float64 // of the level of the root
}

// rounding makes up for what a part of a whole number may be short of one.
const rounding = 1e-9

func newQuotaShape(c *config, u units) quotaShape {
	part := c.headroom / float64(c.instances)
	if c.share < 1 { // a cap in an outage too
		part = math.Min(part, c.share)
	}
	return quotaShape{
		perSecond: part * u.rate.PerSecond(),
		burst:     max(1, int64(math.Min(part*float64(u.burst)+rounding, exact))),
		part:      part,
	}
}

// A fallback is the degraded bucket of a key, or of all keys without a place in
// the table that fall together. It is made at the first need and then kept: an
// outage that comes and goes finds it as it was.
type fallback struct {
	limiter *Limiter // for Retire only

	mu    sync.Mutex // guards what follows; taken under an entry's lock
	quota *local.Quota
	shape quotaShape // of the quota
	fresh bool       // Redis has answered since the quota was last used
}

// heard notes that Redis answered: the next outage starts at its level.
func (f *fallback) heard() {
	f.mu.Lock()
	f.fresh = true
	f.mu.Unlock()
}

// at returns the quota in a shape, made or lowered to a level. mu is held.
func (f *fallback) at(l *Limiter, e *entry, now int64) *local.Quota {
	shape := l.shape(e)
	if f.quota != nil && f.shape != shape {
		f.quota.Reshape(shape.perSecond, shape.burst, now)
	}
	switch {
	case f.quota == nil:
		f.quota = local.NewQuota(shape.perSecond, shape.burst, l.startLevel(e, now), now)
	case f.fresh:
		f.quota.Lower(l.startLevel(e, now), now)
	}
	f.fresh, f.shape = false, shape
	return f.quota
}

// shape is that of the degraded bucket of a key. Keys without a place in the
// table fall together, whatever their limits, into buckets of the limiter's own.
func (l *Limiter) shape(e *entry) quotaShape {
	if t := l.terms.Load(); !e.tracked && !t.fixed() {
		return t.quota
	}
	return e.force().quota
}

// full reports whether forgetting the quota of e would give nothing away. In an
// outage, what was last heard of the root may have yet to lower it.
func (f *fallback) full(l *Limiter, e *entry, now int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.quota != nil && !f.quota.Full(now) {
		return false
	}
	lowered := f.quota != nil && !f.fresh
	return l.up(e) || lowered || l.startLevel(e, now) >= float64(l.shape(e).burst)
}

// turn is how long n tokens take.
func (f *fallback) turn(l *Limiter, n, now int64) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.quota == nil || l.cfg.policy != Share {
		return 0
	}
	return f.quota.RetryAfter(n, now)
}

// refusedFor is how long a FailClosed limiter tells callers to stay away: about
// as long as it takes to notice that Redis is back.
const refusedFor = time.Second

// startLevel is this instance's part of what the root may hold, and a full
// bucket for a key of which nothing is known.
func (l *Limiter) startLevel(e *entry, now int64) float64 {
	if !e.root.known {
		return float64(l.shape(e).burst)
	}
	return l.shape(e).part*e.bound(now)/local.Unit + rounding
}

// degrade decides a request by the outage policy. What is held on lease was
// tried before. mu is held.
func (l *Limiter) degrade(e *entry, n, now int64) Result {
	switch l.cfg.policy {
	case FailOpen:
		return e.force().allow(SourceDegraded, e.force().burst)
	case FailClosed:
		return e.force().refuse(SourceDegraded, 0, refusedFor)
	default:
	}
	f := e.fallback
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.at(l, e, now)
	if q.Take(n, now) {
		return e.force().ofQuota(true, q.Tokens(now), 0)
	}
	return e.force().ofQuota(false, q.Tokens(now), max(1, q.RetryAfter(n, now)))
}

// alone admits a request by the outage policy the short way: with nothing on
// lease, nobody waiting and nothing under way there is nothing else to ask. A
// refusal takes the long way, and then stands.
func (l *Limiter) alone(res *Result, e *entry, n, now int64) bool {
	if l.cfg.policy != Share || e.rules != nil || !e.mu.TryLock() {
		return false
	}
	t := e.force()
	left := int64(0)
	ok := !e.dead && e.flight == nil && len(e.queue) == 0 && e.queued == 0 && e.share == nil &&
		!t.fixed() && n <= t.largest && e.lease.Rights(now) == 0 && !l.closed.Load()
	if ok {
		q := e.own.at(l, e, now)
		if ok = q.Take(n, now); ok {
			left = q.Tokens(now)
		}
	}
	e.active = now
	e.mu.Unlock()
	if ok {
		t.degraded(res, left)
		l.counts.allowed[SourceDegraded].Add(1)
		l.counts.left.observe(1, left, t.burst)
	}
	return ok
}

// degradeQueue moves the queue of a key through the outage policy. mu is held.
func (l *Limiter) degradeQueue(e *entry, now int64) {
	for len(e.queue) > 0 {
		w := e.queue[0]
		if e.lease.TakeLate(now, w.n) { // it was paid for
			e.queue = e.queue[1:]
			l.decide(e, w, e.force().allow(SourceLease, e.lease.Balance(now)))
			continue
		}
		res := l.degrade(e, w.n, now)
		if w.patient && !res.Allowed {
			l.block(e, SourceDegraded, res.RetryAfter, now)
			return
		}
		e.queue = e.queue[1:]
		l.decide(e, w, res)
	}
}
