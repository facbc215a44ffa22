package hybrid

import (
	"context"
	"time"

	"github.com/resilient-go/limiter/local"
)

// Allow asks for one token of a key. It is shorthand for [Limiter.Take].
func (l *Limiter) Allow(ctx context.Context, key string) (Result, error) {
	return l.Take(ctx, Request{Key: key, N: 1})
}

// AllowN asks for n tokens of a key. It is shorthand for [Limiter.Take].
func (l *Limiter) AllowN(ctx context.Context, key string, n int) (Result, error) {
	return l.Take(ctx, Request{Key: key, N: n})
}

// Take decides a request now, without waiting for tokens. It asks, in this
// order: the permits that this instance holds on lease, its local share, a
// refusal of Redis that still stands, Redis, and in an outage the outage policy.
// Only the fourth step waits for anything, for the remote time-out at most.
//
// The error is nil unless the request can never be decided: [ErrInvalidKey],
// [ErrInvalidN], [ErrExceedsBurst], [ErrClosed], or the context's own error if
// it ended while Redis was asked. A refusal is not an error, and neither is an
// outage. The context does not bound how long Redis may take, and its end does
// not count against Redis.
func (l *Limiter) Take(ctx context.Context, r Request) (Result, error) {
	if r.N == 0 {
		return l.Peek(ctx, r.Key)
	}
	if err := l.check(r); err != nil {
		return Result{}, err
	}
	now := l.now()
	if e, ok := l.keys.Get(r.Key); ok {
		if left, low, ok := e.lease.Take(now, int64(r.N)); ok {
			e.leased.Add(1)
			if low {
				l.renew(e, now)
			}
			return l.allow(SourceLease, left+e.hint.Load()), nil
		}
	}
	return l.ask(ctx, r, false)
}

// check refuses what can never pass, before anything is spent.
func (l *Limiter) check(r Request) error {
	switch {
	case r.Key == "":
		return ErrInvalidKey
	case r.N < 0:
		return ErrInvalidN
	case int64(r.N) > l.largest:
		return ErrExceedsBurst
	default:
		return nil
	}
}

// ask decides a request under the lock of its key, or waits for Redis to.
func (l *Limiter) ask(ctx context.Context, r Request, patient bool) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	w := &waiter{n: int64(r.N), patient: patient, done: make(chan verdict, 1)}
	if d, ok := ctx.Deadline(); ok && patient {
		w.deadline = int64(d.Sub(l.epoch))
	}
	e := l.lock(r.Key)
	if l.closed.Load() {
		e.mu.Unlock()
		return Result{}, ErrClosed
	}
	l.arrive(e, w, l.now())
	e.mu.Unlock()

	select {
	case v := <-w.done:
		return v.res, v.err
	default:
	}
	var timeout <-chan time.Time
	if patient {
		l.counts.waiting.Add(1)
		defer l.counts.waiting.Add(-1)
	} else {
		t := time.NewTimer(l.cfg.timeout)
		defer t.Stop()
		timeout = t.C
	}
	select {
	case v := <-w.done:
		return v.res, v.err
	case <-timeout:
		return l.leave(e, w, nil)
	case <-ctx.Done():
		return l.leave(e, w, ctx.Err())
	case <-l.closing:
		return l.leave(e, w, ErrClosed)
	}
}

// arrive takes a request through the steps that need no network and, if none
// decides it, into the queue. mu is held.
func (l *Limiter) arrive(e *entry, w *waiter, now int64) {
	e.active = now
	if len(e.queue) == 0 && e.queued == 0 && e.lease.TakeLate(now, w.n) {
		e.leased.Add(1)
		l.decide(e, w, l.allow(SourceLease, e.lease.Balance(now)+e.hint.Load()))
		l.renewLocked(e, now)
		return
	}
	e.queue = append(e.queue, w)
	if w.patient {
		e.queued++
		e.lease.Shut(true) // nobody overtakes
	}
	switch {
	case e.flight == nil:
		l.pump(e, now)
	case e.queued == 0 && !l.breaker.Closed():
		l.degradeQueue(e, now) // the message was sent before; nobody waits for its end
	}
}

// pump moves the queue of a key: from the lease, past the local share and a
// standing refusal, to Redis, or, while Redis is not asked, through the outage
// policy. Afterwards the queue is empty, or a message is under way, or a timer
// is set. mu is held and no message is under way.
func (l *Limiter) pump(e *entry, now int64) {
	if e.share != nil {
		e.share.Advance(now)
		e.share.Hold(e.lease.Rights(now))
	}
	for len(e.queue) > 0 {
		w := e.queue[0]
		earned, meters := e.lease.Meter(w.n, now)
		switch {
		case e.lease.TakeLate(now, w.n):
			e.leased.Add(1)
			e.queue = e.queue[1:]
			l.decide(e, w, l.allow(SourceLease, e.lease.Balance(now)+e.hint.Load()))
		case meters && !e.lease.Paused():
			if e.lease.Due(now) && l.breaker.Closed() {
				l.send(e, l.message(e, now))
				return
			}
			if w.patient {
				l.block(e, SourceDenied, earned, now)
				return
			}
			e.queue = e.queue[1:]
			l.decide(e, w, l.refuse(SourceDenied, e.lease.Balance(now), l.metered(earned)))
		case e.share != nil && e.share.Level() < w.n:
			if held := e.lease.Balance(now); held > 0 && e.share.Level()+held >= w.n && l.breaker.Closed() {
				l.send(e, &flight{msg: l.returning(e, now), sent: now}) // it is in the way of a large request
				return
			}
			if w.patient {
				l.block(e, SourcePrefilter, e.share.RetryAfter(w.n), now)
				return
			}
			e.queue = e.queue[1:]
			l.decide(e, w, l.refuse(SourcePrefilter, 0, e.share.RetryAfter(w.n)))
		case !l.breaker.Closed():
			l.degradeQueue(e, now)
			return
		case now < e.root.until && float64(w.n*local.Unit) > e.bound(l, now):
			if w.patient {
				l.block(e, SourceDenied, l.wakeAfter(e, w.n, now), now)
				return
			}
			e.queue = e.queue[1:]
			l.decide(e, w, l.refuse(SourceDenied, int64(e.bound(l, now))/local.Unit, l.retryAfter(e, w.n, now)))
		default:
			l.send(e, l.message(e, now))
			return
		}
	}
}

// renew asks for a new lump while there is still something to spend.
func (l *Limiter) renew(e *entry, now int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l.renewLocked(e, now)
}

func (l *Limiter) renewLocked(e *entry, now int64) {
	if e.dead || e.flight != nil || !e.lease.Due(now) || !l.breaker.Closed() || l.closed.Load() {
		return
	}
	e.active = now
	l.send(e, l.message(e, now))
}
