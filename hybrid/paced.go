package hybrid

import (
	"context"
	"math"
	"time"

	"github.com/resilient-go/limiter/local"
)

// A leaky bucket gives those who wait a turn in its outflow: they are admitted at
// once, and come back when what was in the bucket before them has drained. Turns are
// booked one horizon ahead at most, so that a message serves as many callers as the
// outflow does meanwhile and little is lost with an instance that dies.

// booking is how far ahead the turns of a message may be: nobody is given one that
// comes after the own deadline. mu is held.
func (l *Limiter) booking(f *flight) time.Duration {
	ahead := l.cfg.horizon
	for _, w := range f.waiters {
		if w.patient && w.deadline != 0 {
			ahead = min(ahead, time.Duration(w.deadline-f.sent)-f.margin)
		}
	}
	return max(0, ahead)
}

// reach is how many tokens the root must have for a request. One that waits for its
// turn needs a bucket that drains to it within a horizon.
func (l *Limiter) reach(e *entry, n int64, patient bool) int64 {
	if !patient || l.cfg.algorithm != LeakyBucket {
		return n
	}
	t := e.force()
	return min(t.burst, max(n, t.burst-int64(t.rate.In(l.cfg.horizon)/local.Unit)))
}

// turnAt is how long what is in a bucket, in micro-tokens, takes to drain; what
// is far beyond the bucket is estimated.
func (t *terms) turnAt(water int64) time.Duration {
	if water <= 2*t.burst*local.Unit {
		return t.timeFor(max(0, water))
	}
	return time.Duration(math.Min(float64(water)/t.rate.PerSecond()*1000, math.MaxInt64/4))
}

// outflow is the least time until the turn comes of one who has that many tokens
// ahead in the queue.
func (l *Limiter) outflow(e *entry, ahead, now int64) time.Duration {
	if !e.root.known || !l.up(e) {
		return l.turn(e, ahead, now)
	}
	t := e.force()
	water := float64((t.burst+ahead)*local.Unit) - e.bound(now)
	return time.Duration(math.Min(math.Max(0, water/t.rate.PerSecond()*1000), math.MaxInt64/4))
}

// tooLate reports whether a refused one that waits would get its turn after its
// deadline: just then its message was allowed none so far ahead.
func (w *waiter) tooLate(f *flight, turn time.Duration) bool {
	return w.deadline != 0 && f.sent+int64(turn+f.margin) > w.deadline
}

// admitAt gives a waiter its permit, and the instant of its turn. mu is held.
func (l *Limiter) admitAt(e *entry, w *waiter, res Result, due int64) {
	l.record(e, w.n, w.kind, res)
	l.finish(e, w, verdict{res: res, due: due})
}

// await returns a verdict when its turn has come. A permit whose caller leaves
// before is lost: the place in the outflow has been taken.
func (l *Limiter) await(ctx context.Context, v verdict, n int) verdict {
	left := v.due - l.now()
	if v.due == 0 || left <= 0 {
		return v
	}
	t := time.NewTimer(time.Duration(left))
	defer t.Stop()
	err := ErrClosed
	select {
	case <-t.C:
		return v
	case <-ctx.Done():
		err = ctx.Err()
	case <-l.closing:
	}
	l.counts.lost.Add(uint64(n))
	return verdict{err: err}
}
