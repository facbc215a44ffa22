package hybrid

import (
	"math"
	"sync"
	"time"

	"github.com/resilient-go/limiter/local"
)

// quotaShape is what one instance may use of a limit in an outage.
type quotaShape struct {
	limit     units
	part      float64 // of the rate, of the burst and of the level of the root
	perSecond float64
	first     int64 // the burst of the first tier, mostly the only one,
	burst     int64 // and the smallest of all; 0: nothing is ever admitted
}

// rounding makes up for what a part of a whole number may be short of one.
const rounding = 1e-9

func newQuotaShape(c *config, u units, part float64) quotaShape {
	least := int64(1)
	if c.strict {
		least = 0
	}
	burst := func(u units) int64 {
		return max(least, int64(math.Min(part*float64(u.burst)+rounding, exact)))
	}
	q := quotaShape{limit: u, part: part, perSecond: part * u.rate.PerSecond(), first: burst(u)}
	q.burst = q.first
	for _, u := range c.tiers.all() {
		q.burst = min(q.burst, burst(u))
	}
	return q
}

// timeToFill is how long the bucket takes to be full from so many tokens on.
func (q *quotaShape) timeToFill(remaining int64) time.Duration {
	missing := float64(max(0, q.burst-remaining))
	return time.Duration(math.Min(math.Ceil(missing/q.perSecond*1e9), math.MaxInt64/2))
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
	taken int64      // tokens, of which Redis has not been told
}

// heard notes that Redis answered: the next outage starts at its level.
func (f *fallback) heard() {
	f.mu.Lock()
	f.fresh = true
	f.mu.Unlock()
}

// at returns the quota in a shape, made or lowered to a level. mu is held.
func (f *fallback) at(l *Limiter, e *entry, now int64) *local.Quota {
	shape := f.shape
	reshaped := false
	if part, limit := l.part(e, now), l.limitOf(e).units; f.quota == nil || shape.part != part || shape.limit != limit {
		reshaped = true
		shape = newQuotaShape(&l.cfg, limit, part)
		if f.quota != nil {
			f.quota.Reshape(shape.perSecond, shape.first, now)
		}
	}
	switch {
	case f.quota == nil:
		f.quota = local.NewQuota(shape.perSecond, shape.first, l.startLevel(e, shape, now), now)
	case f.fresh:
		f.quota.Lower(l.startLevel(e, shape, now), now)
	}
	if l.cfg.tiers != nil {
		f.besides(l, e, shape.part, reshaped, now)
	}
	f.fresh, f.shape = false, shape
	return f.quota
}

// take spends n tokens of the quota of e if it has them.
func (f *fallback) take(l *Limiter, e *entry, n int64, k kind, now int64) (ok bool, left int64) {
	q := f.at(l, e, now)
	if f.shape.burst == 0 {
		return false, 0
	}
	if ok = q.TakeAbove(n, l.keep(k, f.shape.burst), now); ok {
		f.taken += n
	}
	return ok, q.Tokens(now)
}

// owed is what Redis is to be charged for: what was admitted, as far as the quota
// has not gained it back meanwhile, and as far as the root has it, since all that
// must not be is that it gives once more what it gained in the outage. Its level is
// known when it has answered again. It is told once. Nobody is told for the keys
// without a place in the table.
func (f *fallback) owed(e *entry, now int64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.quota == nil || f.taken == 0 || !f.fresh {
		return 0
	}
	n := min(f.taken, f.quota.Missing(now))
	f.taken = 0
	return max(0, min(n, int64(e.bound(now))/local.Unit))
}

// owes reports whether there is something to tell.
func (f *fallback) owes() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.taken > 0
}

// limitOf gives the limit that counts for the degraded bucket of a key. Keys
// without a place in the table fall together, whatever their limits, into buckets
// of the limiter's own.
func (l *Limiter) limitOf(e *entry) *terms {
	if t := l.terms.Load(); !e.tracked && !t.fixed() {
		return t
	}
	return e.force()
}

// shape is that of the degraded bucket of a key.
func (l *Limiter) shape(e *entry, now int64) quotaShape {
	return newQuotaShape(&l.cfg, l.limitOf(e).units, l.part(e, now))
}

// part is how much of the limit of a key this instance uses in an outage. While it
// has a lease it is what the root has granted, by demand. While others have one, it
// is half of an equal part, which the root keeps for those without. Else it is an
// equal part. What counts is how it was when the outage began.
func (l *Limiter) part(e *entry, now int64) float64 {
	n, _ := l.instances()
	part := 1 / float64(n)
	if since := e.lane.Load().outage.began.Load(); e.tracked && e.root.known {
		if since == 0 || l.up(e) {
			since = now
		}
		switch {
		case l.cfg.algorithm.windowed(): // nobody is told a part
		case e.partUntil > since:
			part = e.part
		case e.root.lastEnd > since && e.root.out > 0:
			part /= 2
		}
	}
	part *= l.cfg.headroom
	if l.cfg.share < 1 { // a cap in an outage too
		part = math.Min(part, l.cfg.share)
	}
	return part
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
	if l.up(e) || lowered {
		return true
	}
	shape := l.shape(e, now)
	return l.startLevel(e, shape, now) >= float64(shape.burst)
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
func (l *Limiter) startLevel(e *entry, shape quotaShape, now int64) float64 {
	switch {
	case l.cfg.strict:
		return 0
	case !e.root.known:
		return float64(shape.first)
	case len(e.root.tiers) > 0:
		t := e.force()
		grown := float64(e.root.tiers[0]) + t.rate.In(time.Duration(now-e.root.at))
		return shape.part*math.Min(grown, float64(t.burst*local.Unit))/local.Unit + rounding
	default:
		return shape.part*e.bound(now)/local.Unit + rounding
	}
}

// degrade decides a request by the outage policy. What is held on lease was
// tried before. mu is held.
func (l *Limiter) degrade(e *entry, n int64, k kind, now int64) Result {
	e.claim = claim{}
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
	if k&books != 0 {
		return l.bookPart(e, n, k, now)
	}
	ok, left := f.take(l, e, n, k, now)
	retry := time.Duration(0)
	switch {
	case ok:
	case f.shape.burst == 0:
		retry = refusedFor
	default:
		retry = max(1, f.quota.RetryAfter(n+l.keep(k, f.shape.burst), now))
	}
	return e.force().ofQuota(&f.shape, ok, left, retry)
}

// alone admits a request by the outage policy the short way: with nothing on
// lease, nobody waiting and nothing under way there is nothing else to ask. A
// refusal takes the long way, and then stands.
func (l *Limiter) alone(res *Result, e *entry, n int64, k kind, now int64) bool {
	if l.cfg.policy != Share || e.rules != nil || !e.mu.TryLock() {
		return false
	}
	if e.flight == nil {
		l.route(e, now)
	}
	t := e.force()
	left := int64(0)
	ok := !l.up(e) && !e.dead && e.flight == nil && len(e.queue) == 0 && e.queued == 0 && e.share == nil &&
		!t.fixed() && n <= t.most(k) && e.lease.Rights(now) == 0 && !l.closed.Load()
	if ok {
		ok, left = e.own.take(l, e, n, k, now)
	}
	shape := e.own.shape // the next one may change it once mu is free
	e.active = now
	e.mu.Unlock()
	if ok {
		t.degraded(res, &shape, left)
		l.counter(e, SourceDegraded, true).Add(1)
		l.counts.left.observe(1, left, t.burst)
	}
	return ok
}

// degradeQueue moves the queue of a key through the outage policy. mu is held.
func (l *Limiter) degradeQueue(e *entry, now int64) {
	for len(e.queue) > 0 {
		w := e.queue[0]
		if e.lease.TakeLateAbove(now, w.n, e.onLease(w.kind)) { // it was paid for
			e.queue = e.queue[1:]
			l.decide(e, w, e.force().allow(SourceLease, e.lease.Balance(now)))
			continue
		}
		res := l.degrade(e, w.n, w.kind, now)
		if w.patient && !res.Allowed {
			l.block(e, SourceDegraded, res.RetryAfter, now)
			return
		}
		e.queue = e.queue[1:]
		l.decide(e, w, res)
	}
}
