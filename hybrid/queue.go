package hybrid

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/resilient-go/limiter/local"
)

// A waiter is a caller who waits for a decision.
type waiter struct {
	n        int64
	kind     kind
	patient  bool  // Wait: stays until it is served
	deadline int64 // instant by which a patient one must be served; 0: none
	gone     bool  // decided, or nobody listens any more
	boarded  bool  // it has been sent before
	done     chan verdict
}

type verdict struct {
	res Result
	err error
	due int64 // the instant at which it is told; 0: at once

	claim claim // of those who asked for one
}

// Wait waits for one token of a key. See [Limiter.WaitN].
func (l *Limiter) Wait(ctx context.Context, key string) (Result, error) {
	return l.WaitN(ctx, key, 1)
}

// WaitN waits until n tokens of a key can be had; n = 0 only looks. Those who wait on one instance
// are served in order of arrival, and no Take of this instance overtakes them.
// WaitN ends with the permit, with the context's error, or with [ErrClosed]. If
// it is known that the permit comes after the context's deadline, it ends at
// once with [ErrWouldExceedDeadline]. A wait that ends without a permit costs
// nothing unless Redis was being asked at that moment.
//
// In an outage the wait is served by the outage policy; with [FailClosed] it
// lasts until Redis is back.
func (l *Limiter) WaitN(ctx context.Context, key string, n int) (Result, error) {
	r := Request{Key: key, N: n}
	if n == 0 {
		return l.Peek(ctx, key)
	}
	if l.cfg.shadow {
		return l.Take(ctx, r)
	}
	if err := l.check(r); err != nil {
		return Result{}, err
	}
	return l.ask(ctx, nil, r, true, 0)
}

// decide gives a waiter its result. mu is held.
func (l *Limiter) decide(e *entry, w *waiter, res Result) {
	if t := e.force(); t.timed || t.tiers != nil {
		e.untilReset(&res, l.now())
	}
	l.record(e, w.n, w.kind, res)
	v := verdict{res: res}
	if res.Source == SourceLease {
		e.claim = claim{}
		e.claimed(w.n, w.kind)
		v.claim = e.claim
	} else if w.kind&books != 0 {
		v.claim, e.claim = e.claim, claim{}
	}
	l.finish(e, w, v)
}

// record counts a decision.
func (l *Limiter) record(e *entry, n int64, k kind, res Result) {
	switch res.Source {
	case SourceLease:
		return // the lease counts
	case SourcePrefilter, SourceDenied:
		if k&low == 0 {
			e.note(n) // it is demand, although the root will not hear of the request
		}
	}
	l.counts.left.observe(1, int64(res.Remaining), int64(res.Limit.Burst()))
	l.counter(e, res.Source, res.Allowed).Add(1)
}

// finish ends a wait: the channel has room for the one verdict.
func (l *Limiter) finish(e *entry, w *waiter, v verdict) {
	l.forget(e, w)
	w.done <- v
}

// forget takes a waiter out of the count of those who hold others back.
func (l *Limiter) forget(e *entry, w *waiter) {
	w.gone = true
	if w.patient {
		if e.queued--; e.queued == 0 && !e.claiming {
			e.lease.Shut(false)
		}
	}
}

// leave is called by a waiter whose time is over: with the error that it ends
// with, or with none when Redis took too long.
func (l *Limiter) leave(e *entry, w *waiter, cause error) verdict {
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case v := <-w.done: // decided in the same moment
		if v.due > l.now() {
			l.counts.lost.Add(uint64(w.n))
			return verdict{err: cause}
		}
		return v
	default:
	}
	l.forget(e, w)
	now := l.now()
	if i := slices.Index(e.queue, w); i >= 0 {
		e.queue = slices.Delete(e.queue, i, i+1)
		switch {
		case len(e.queue) == 0:
			e.stopTimer()
		case i == 0 && e.flight == nil && !l.closed.Load():
			l.pump(e, now) // the next one may need less
		}
	}
	if cause != nil {
		return verdict{err: cause}
	}
	res := l.degrade(e, w.n, w.kind, now)
	l.record(e, w.n, w.kind, res)
	return verdict{res: res, claim: e.claim}
}

// block stops the queue at its head, a patient one, until a timer rings after
// wake. Those behind it who do not wait are refused, and so are those who
// would wait in vain. mu is held.
func (l *Limiter) block(e *entry, src Source, wake time.Duration, now int64) {
	var kept []*waiter
	var ahead int64
	for _, w := range e.queue {
		turn := l.turn(e, ahead+w.n, now)
		if w.patient && l.cfg.algorithm == LeakyBucket {
			turn = l.outflow(e, ahead, now)
		}
		switch {
		case !w.patient:
			l.decide(e, w, e.force().refuse(src, 0, max(wake, turn)))
		case w.deadline != 0 && now+int64(turn) > w.deadline:
			l.finish(e, w, verdict{err: ErrWouldExceedDeadline})
		default:
			kept = append(kept, w)
			ahead += w.n
		}
	}
	head := e.queue[0]
	e.queue = kept
	if len(kept) == 0 {
		e.stopTimer()
		return
	}
	if kept[0] != head {
		l.pump(e, now) // the next one may need less
		return
	}
	if src == SourceDegraded && !e.tracked {
		wake = min(wake, refusedFor) // nobody else tells it that Redis is back
	}
	l.wake(e, wake)
}

// total is how many tokens some wait for together.
func total(waiters []*waiter) (n int64) {
	for _, w := range waiters {
		n += w.n
	}
	return n
}

// turn is the least time until n tokens can be had, those for whoever is ahead
// included.
func (l *Limiter) turn(e *entry, n, now int64) time.Duration {
	if !l.up(e) {
		return e.fallback.turn(l, n, now)
	}
	var d float64
	if rate := e.lease.Rate(); rate > 0 && e.flight == nil {
		missing := (n-e.lease.Balance(now))*local.Unit - e.lease.Part()
		return time.Duration(math.Max(0, math.Ceil(float64(missing)/float64(rate)*1e9)))
	}
	if t := e.force(); t.timed && e.root.known {
		d = float64(t.timedTurn(&e.root, n, now))
	} else if e.root.known && t.tiers != nil {
		d = float64(t.tiersTurn(&e.root, n, now))
	} else if e.root.known {
		d = (float64(n)*local.Unit - e.bound(now)) / e.force().rate.PerSecond() * 1000 // ns
	}
	if e.share != nil && e.share.Level() < n {
		d = math.Max(d, float64(l.shareHas(e, n, now)))
	}
	return time.Duration(math.Min(math.Max(0, d), math.MaxInt64/4))
}

// wakeAfter is when a patient one asks again: when the tokens are due, or, if
// leases leave no room for them, when their holders may have returned some.
func (l *Limiter) wakeAfter(e *entry, n int64, k kind, now int64) time.Duration {
	if t := e.force(); t.timed || t.tiers != nil {
		d := t.retryAfter(&e.root, n, now)
		if e.root.out > 0 { // somebody may give some back
			d = min(d, time.Duration(e.silence(k)-now))
		}
		if e.rivals > 1 {
			d = max(d, time.Duration(e.silence(k)-now))
		}
		return max(1, d)
	}
	due := e.force().timeFor(n*local.Unit-e.root.tokens) - time.Duration(now-e.root.told)
	due = max(1, due, time.Duration(e.silence(k)-now)) // the latter may be for who needs less
	if e.rivals > 1 {
		return due
	}
	return max(1, min(e.force().retryAfter(&e.root, n, now), due))
}

// moveQueues has those who wait go by who decides now, Redis or the outage policy.
func (l *Limiter) moveQueues() {
	l.keys.All(func(e *entry) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if len(e.queue) > 0 && e.flight == nil && !l.closed.Load() {
			l.pump(e, l.now())
		}
		l.payUp(e, l.now())
	})
}

// stopTimer lets go of the timer when nobody waits, so that a key that is
// forgotten is not kept by it.
func (e *entry) stopTimer() {
	if e.timer != nil {
		e.timer.Stop()
		e.timer = nil
	}
}

// wake sets the key's one timer.
func (l *Limiter) wake(e *entry, after time.Duration) {
	if e.timer != nil {
		e.timer.Reset(after)
		return
	}
	e.timer = l.afterFunc(after, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.flight == nil && !l.closed.Load() {
			l.pump(e, l.now())
		}
	})
}
