package hybrid

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
)

// SetLimit gives this instance another limit for all keys from now on, but for
// those that [WithLimitByKey] or [WithRules] names one for. Tokens are kept, as far as they fit
// the new burst; permits on lease are renewed under the new limit with the next
// request of their key, those of other instances at the latest when their leases
// end. Whoever waits for more than the new burst gets [ErrExceedsBurst].
//
// Tell all instances: while they disagree the smaller limit applies, so that a
// higher one applies everywhere when the last one was told, and one lease later; see
// [WithLimitVersion] and [Limiter.SetLimitVersion]. The error is a [*ConfigError] or
// [ErrClosed], and then nothing has changed.
func (l *Limiter) SetLimit(limit Limit) error {
	return l.setLimit(limit, func(current int64) int64 { return current })
}

// SetLimitVersion is SetLimit with a new version of the limit: instances with a
// lower one apply this limit at once, key by key as they ask Redis.
func (l *Limiter) SetLimitVersion(limit Limit, version int64) error {
	if version < 0 || version >= exact {
		return &ConfigError{Field: "SetLimitVersion", Reason: fmt.Sprintf("the version must be from 0 to 2^53 - 1, not %d", version)}
	}
	return l.setLimit(limit, func(int64) int64 { return version })
}

func (l *Limiter) setLimit(limit Limit, version func(int64) int64) error {
	l.limitMu.Lock()
	defer l.limitMu.Unlock()
	if l.closed.Load() {
		return ErrClosed
	}
	old := l.terms.Load()
	t, err := newTerms(&l.cfg, limit, version(old.version))
	if err != nil {
		return err
	}
	if t.same(old) {
		return nil
	}
	l.terms.Store(t)
	l.keys.All(func(e *entry) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if !e.named && !e.mine.same(t) {
			l.retune(e, t, l.now())
		}
	})
	return nil
}

// retune has this instance ask for other terms for a key. mu is held.
func (l *Limiter) retune(e *entry, t *terms, now int64) {
	if t.fixed() {
		t = t.after(e.mine)
	}
	e.mine = t
	e.withdraw()
	l.adopt(e, t, now)
	l.weed(e)
	switch {
	case e.flight != nil || l.closed.Load(): // it lands soon, and sees to the rest
	case t.fixed():
		l.handBack(e, now)
	default:
		e.lease.Hurry()
		l.pump(e, now)
	}
}

// handBack returns what is held on lease with a message like any other, which the
// next one of the key waits for. mu is held and no message is under way.
func (l *Limiter) handBack(e *entry, now int64) {
	if !e.lease.Idle() && l.up(e) && !l.closed.Load() {
		l.send(e, &flight{msg: l.returning(e, now), sent: now})
	}
}

// weed ends the wait of those for whom there is nothing to wait for under the terms
// in force. mu is held.
func (l *Limiter) weed(e *entry) {
	t := e.force()
	e.queue = slices.DeleteFunc(e.queue, func(w *waiter) bool {
		switch {
		case t.fixed() && (t.limit == Unlimited || !w.patient):
			l.decide(e, w, t.rule())
		case w.n > t.most(w.kind):
			l.finish(e, w, verdict{err: ErrExceedsBurst})
		default:
			return false
		}
		return true
	})
	if len(e.queue) == 0 {
		e.stopTimer()
	}
}

// adopt puts terms in force for a key. mu is held.
func (l *Limiter) adopt(e *entry, t *terms, now int64) {
	if old := e.force(); *old == *t {
		return
	}
	e.terms.Store(t)
	e.withdraw()
	if t.fixed() {
		return // a local share goes on, so that the way there and back fills none
	}
	e.hold(now, 0) // what was spent since makes room
	e.shareOut(l, t)
	e.ramp = min(e.ramp, t.burst)
	e.root.until, e.root.lowUntil, e.root.bookUntil = 0, 0, 0 // the refusals were those of the other limit
}

// rules is what an entry needs to ask the user's function for its limit.
type rules struct {
	key   string
	asked atomic.Int64  // instant of the last answer, or one of those below
	ready chan struct{} // closed when the first answer is there
}

const (
	never  = -1            // the function was not asked yet
	asking = math.MaxInt64 // it is being asked
)

func newRules(key string) *rules {
	r := &rules{key: key, ready: make(chan struct{})}
	r.asked.Store(never)
	return r
}

// consult asks the user's function for the limit of a key if it is time to. It is
// called under no lock. Whoever comes while the first answer is awaited waits for
// it; later ones go on with the old limit.
func (l *Limiter) consult(e *entry) {
	r := e.rules
	if r == nil {
		return
	}
	last := r.asked.Load()
	if last != never && l.now()-last < int64(l.cfg.horizon) || !r.asked.CompareAndSwap(last, asking) {
		<-r.ready
		return
	}
	defer func() { // also when the function ends its goroutine
		r.asked.Store(l.now())
		if last == never {
			close(r.ready)
		}
	}()
	t, err := l.limitFor(r.key)
	if err != nil {
		l.reportLimit(e, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if t == nil || e.dead || l.closed.Load() {
		return
	}
	e.named = true
	if !e.mine.same(t) {
		l.retune(e, t, l.now())
	}
}

// limitFor asks the user's function.
func (l *Limiter) limitFor(key string) (t *terms, err error) {
	defer func() {
		if p := recover(); p != nil {
			t, err = nil, &ConfigError{Field: "WithLimitByKey", Reason: fmt.Sprintf("it panicked: %v", p)}
		}
	}()
	return newTerms(&l.cfg, l.cfg.limitOf(key), l.terms.Load().version)
}
