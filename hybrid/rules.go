package hybrid

import (
	"fmt"
	"sync/atomic"
)

// SetLimit gives this instance another limit for all keys from now on, but for
// those that [WithLimitByKey] names one for. Tokens are kept, as far as they fit
// the new burst; permits on lease are renewed under the new limit with the next
// request of their key, those of other instances at the latest when their leases
// end. Whoever waits for more than the new burst gets [ErrExceedsBurst].
//
// Tell all instances: while they disagree the smaller limit applies, so that a
// higher one applies everywhere when the last one was told, and one lease later; see
// [WithLimitVersion] and [Limiter.SetLimitVersion]. The error is a [*ConfigError],
// and then nothing has changed.
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
	old := l.terms.Load()
	t, err := newTerms(&l.cfg, limit, version(old.version))
	if err != nil {
		return err
	}
	if *t == *old {
		return nil
	}
	l.terms.Store(t)
	l.keys.All(func(e *entry) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.mine == old && (e.rules == nil || !e.rules.named) {
			l.retune(e, t, l.now())
		}
	})
	return nil
}

// retune has this instance ask for other terms for a key. mu is held.
func (l *Limiter) retune(e *entry, t *terms, now int64) {
	e.mine = t
	l.adopt(e, t, now)
	switch {
	case e.flight != nil: // it lands soon
	case t.fixed():
		l.giveBack(e, now)
		l.pump(e, now)
	default:
		e.lease.Hurry()
		l.pump(e, now)
	}
}

// adopt puts terms in force for a key. mu is held.
func (l *Limiter) adopt(e *entry, t *terms, now int64) {
	if old := e.force(); *old == *t {
		return
	}
	e.terms.Store(t)
	if t.fixed() {
		e.share = nil
		return
	}
	e.shareOut(l, t)
	if e.share != nil {
		e.share.Hold(e.lease.Rights(now))
	}
	e.ramp = min(e.ramp, t.burst)
	e.root.until = 0 // the refusal was one of the other limit
}

// rules is what an entry needs to ask the user's function for its limit.
type rules struct {
	key   string
	asked atomic.Int64  // instant of the last time, 0 before the first
	ready chan struct{} // closed when the first answer is there
	named bool          // the function gave a valid limit; guarded by the entry's mu
}

func newRules(key string) *rules { return &rules{key: key, ready: make(chan struct{})} }

// consult asks the user's function for the limit of a key if it is time to. It is
// called under no lock. Whoever comes while the first answer is awaited waits for
// it; later ones go on with the old limit.
func (l *Limiter) consult(e *entry) {
	r := e.rules
	if r == nil {
		return
	}
	now := max(1, l.now())
	last := r.asked.Load()
	if last != 0 && now-last < int64(l.cfg.horizon) || !r.asked.CompareAndSwap(last, now) {
		<-r.ready
		return
	}
	t, err := l.limitFor(r.key)
	if err != nil {
		l.reportLimit(e, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if last == 0 {
		defer close(r.ready)
	}
	if t == nil || e.dead || l.closed.Load() {
		return
	}
	r.named = true
	if *t != *e.mine {
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
