package hybrid

import (
	"context"
	"sync"
	"time"
)

// A Reservation is tokens that were taken for later, or whose number is only an
// estimate. They count from the instant at which they fall due: wait for that before
// you act ([Reservation.Wait], [Reservation.Delay]). Methods may be called by many
// goroutines at once.
type Reservation struct {
	l   *Limiter
	key string
	res Result
	due int64 // instant

	until int64 // instant at which the window ends that it was counted in; 0: there is none

	mu        sync.Mutex // guards what follows; taken before the lock of a key
	e         *entry     // that decided; it may have been forgotten since
	n         int64      // what it costs by now
	cancelled bool
}

// Reserve takes tokens that may fall due later: where the bucket has too few, it
// goes into a debt of one burst at most, and the reservation is due when the rate has
// paid it. Until then nobody else is admitted, at any instance, except from permits
// on lease and by earlier reservations. Nothing else books ahead.
//
// When one burst is booked, or the request is refused for another reason, the error
// is a [*LimitedError], whose RetryAfter says when to ask again; the other errors are
// those of [Limiter.Take]. What is decided from a lease, by another algorithm than
// the [TokenBucket], or by tiers, is due at once or refused.
//
// The bound: in every window, what falls due in it, with all that is taken otherwise,
// is at most burst + rate·w as ever. A refund counts as taken back at the instant at
// which Redis has it, and a correction upwards may exceed the bound by the debt that
// it leaves, one burst at most per key. If a reservation is cancelled while others
// that were booked behind it are not yet due, what they booked may come on top, up to
// what was cancelled, because their turn does not move.
//
// In an outage this instance's part books ahead in the same way, up to its own burst.
// Corrections of what Redis had granted wait until it is back.
func (l *Limiter) Reserve(ctx context.Context, r Request) (*Reservation, error) {
	return l.reserved(ctx, r, books)
}

// ReserveNow is [Limiter.Reserve] for callers who cannot wait: it never books ahead, so
// the reservation is due at once or refused, and all that is left to do is to settle
// what it has really cost.
func (l *Limiter) ReserveNow(ctx context.Context, r Request) (*Reservation, error) {
	return l.reserved(ctx, r, 0)
}

func (l *Limiter) reserved(ctx context.Context, r Request, k kind) (*Reservation, error) {
	err := l.checkAny(r)
	if err == nil && r.N < 1 {
		err = ErrInvalidN
	}
	var (
		e *entry
		v verdict
	)
	if err == nil {
		now := l.now()
		e, _ = l.keys.Get(r.Key)
		e, v = l.resolve(ctx, e, r, r.Priority.kind()|k, false, now)
		err = v.err
	}
	res, err := l.shadow(v.res, err)
	switch {
	case err != nil:
		return nil, err
	case !res.Allowed:
		return nil, &LimitedError{Key: r.Key, Result: res}
	}
	b := &Reservation{l: l, key: r.Key, res: res, due: v.claim.due, e: e, n: int64(r.N)}
	if l.cfg.algorithm.windowed() {
		b.until = l.now() + int64(res.ResetAfter)
	}
	if res.Shadow || res.Source == SourceRule || res.Source == SourceDegraded && l.cfg.policy != Share {
		b.e = nil // there is nothing to correct
	}
	return b, nil
}

// Result is the decision.
func (r *Reservation) Result() Result { return r.res }

// Delay is how long until the reservation falls due: 0 if it is.
func (r *Reservation) Delay() time.Duration { return time.Duration(max(0, r.due-r.l.now())) }

// Wait waits until the reservation falls due. When the context ends before, or
// certainly will, the reservation is cancelled, and the error is the context's or
// [ErrWouldExceedDeadline].
func (r *Reservation) Wait(ctx context.Context) error {
	delay := r.Delay()
	if delay == 0 {
		return nil
	}
	if end, ok := ctx.Deadline(); ok && time.Until(end) < delay {
		r.Cancel()
		return ErrWouldExceedDeadline
	}
	t := time.NewTimer(delay)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		r.Cancel()
		return ctx.Err()
	case <-r.l.closing:
		return ErrClosed
	}
}

// Cancel gives back what the reservation costs, if it is not yet due, and tells how
// many tokens that is. One that is due has been used as far as anybody knows, and
// costs what it costs; [Reservation.Settle] can say that it was less. Only the first
// call gives anything back.
func (r *Reservation) Cancel() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.n
	if r.cancelled || r.l.now() >= r.due || r.e == nil {
		return 0
	}
	r.cancelled = true
	r.correct(-n)
	return int(n)
}

// Settle says what the reservation has really cost: the bytes that were sent, the
// words that a model has written. What was reserved beyond that is given back, what
// is missing is charged, in the background and at most once. It may be called again
// when more is known; after Cancel, and for a key that is [Unlimited], it does
// nothing. The error is [ErrInvalidN] for a negative cost.
//
// A charge takes the bucket into a debt of one burst at most. What lies beyond is
// not charged, and is counted in Stats.TokensUnaccounted and told as [Unaccounted].
// A refund fills the bucket up, and no further: together with the permits on lease it
// never holds more than the burst, and no key lives longer for it. A [SlidingLog]
// cannot take anything back, the windows only as long as the window lasts that it was
// counted in, and what was not charged does not come back. What can
// be told to nobody any more, as after [Limiter.Close], is counted in
// TokensUnaccounted or TokensLost.
func (r *Reservation) Settle(actual int) error {
	if actual < 0 {
		return ErrInvalidN
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.cancelled && r.e != nil {
		r.correct(int64(actual) - r.n)
	}
	return nil
}

// correct charges more tokens, or gives some back. mu is held.
func (r *Reservation) correct(more int64) {
	if more == 0 {
		return
	}
	l := r.l
	r.n += more
	e, now := l.lock(r.e, r.key, l.now())
	defer e.mu.Unlock()
	r.e = e
	if r.res.Source == SourceDegraded && (more < 0 || !l.up(e)) {
		l.correctPart(e, more, now)
	} else {
		l.correctRoot(e, more, r.until, now)
	}
}
