package hybrid

import (
	"math"
	"time"

	"github.com/resilient-go/limiter/local"
)

// slowestProbe is the longest that another instance may take longer to notice that
// Redis is back.
const slowestProbe = int64(960e6)

// cautiousFor is for how long after an outage an instance takes no more than it did
// in it: others may still be degraded, and their leases are not out yet.
func (l *Limiter) cautiousFor() int64 { return slowestProbe + int64(leaseFor(l.cfg.horizon)) }

// carefulFrom is the instant until which keys are cautious after an outage that ends
// now; 0 where nobody else is.
func (l *Limiter) carefulFrom(now int64) int64 {
	if n, _ := l.instances(); l.cfg.policy != Share || n <= 1 {
		return 0
	}
	return now + l.cautiousFor()
}

// carefulUntil is the instant until which a key that leaves the lane now is cautious.
func (a *lane) carefulUntil(now int64) int64 {
	if !a.up() {
		return a.l.carefulFrom(now)
	}
	return a.cautious.Load()
}

// carefulUntil is the instant until which a key takes no more than in an outage that
// is over. mu is held.
func (e *entry) carefulUntil() int64 { return max(e.careful, e.lane.Load().cautious.Load()) }

// mind caps what a key takes for a while after an outage, or ends that: its local
// share is its part in the outage, with what was left there. mu is held and no
// message is under way.
func (l *Limiter) mind(e *entry, now int64) {
	until := e.carefulUntil()
	if !e.capped && now >= until {
		return
	}
	t := e.force()
	switch {
	case e.capped && now >= until:
		e.capped = false
		if l.cfg.share == 1 {
			e.share = nil
		} else {
			e.shareOut(l, t)
		}
		e.withdraw()
	case !e.capped && e.tracked && !t.fixed():
		f := e.fallback
		f.mu.Lock()
		defer f.mu.Unlock()
		part, left := l.part(e, now), math.Inf(1)
		if f.quota != nil {
			part, left = f.shape.part, float64(f.quota.Tokens(now))
		}
		if part >= 1 {
			return
		}
		e.capped = true
		rate, burst := part*t.rate.PerSecond(), math.Max(1, part*float64(t.burst))
		if e.share == nil {
			s := local.NewShare(rate, burst, now)
			e.share = &s
		} else {
			e.share.Advance(now)
			e.share.Reshape(rate, burst)
		}
		if over := e.share.Level() - int64(math.Min(left, burst)); over > 0 {
			e.share.Take(over)
		}
		e.hold(now, 0)
		e.withdraw()
	}
}

// hampers reports whether the lease is in the way of n tokens that the local share
// has with what is held, or will only ever have without a rate that is lent. Of a
// lease that will earn them it takes a whole token of the share to be worth a call.
// mu is held.
func (e *entry) hampers(n int64, meters bool, now int64) bool {
	if e.share == nil || e.lease.Rights(now) == 0 {
		return false
	}
	level := e.share.Level()
	if level >= n {
		return false
	}
	if meters {
		return level > 0 && level+e.lease.Balance(now) >= n
	}
	return e.lease.Rate() > 0 || e.share.HasWith(n, e.lease.Held(now))
}

// shareHas is how long n tokens take by the local share, and at the root, if what is
// on lease is given back; or by the lease, if it earns them. mu is held.
func (l *Limiter) shareHas(e *entry, n, now int64) time.Duration {
	if earned, ok := e.lease.Meter(n, now); ok {
		return e.force().metered(earned)
	}
	held := e.lease.Held(now)
	d := e.share.RetryAfter(n, held)
	if held > 0 {
		d = e.force().metered(d)
	}
	if left := n - held/local.Unit; e.root.known && left > 0 {
		d = max(d, e.force().retryAfter(&e.root, left, now))
	}
	if e.capped { // it is another one then
		d = min(d, max(1, time.Duration(e.carefulUntil()-now)))
	}
	return d
}

// own tells Redis what an outage admitted of a key that is asked for again, when no
// message would otherwise go out. mu is held.
func (l *Limiter) own(e *entry, now int64) {
	if e.flight == nil && now >= e.badUntil && !e.dead && !l.closed.Load() && l.up(e) && e.fallback.owes() {
		l.send(e, l.message(e, now))
	}
}
