package hybrid

import (
	"errors"
	"math"
	"time"

	"github.com/resilient-go/limiter/breaker"
	"github.com/resilient-go/limiter/internal/inside"
	"github.com/resilient-go/limiter/remote"
)

// The door for this module's simulator: the same limiter on a clock and a network
// that are made up.
func init() {
	inside.Option = func(w inside.World) any {
		return Option(func(c *config) { c.world = w })
	}
	inside.Ask = func(limiter any, key string, n int, patient bool) (inside.Decision, inside.Request) {
		l := limiter.(*Limiter)
		r := Request{Key: key, N: n}
		if err := l.check(r); err != nil {
			return decision(verdict{err: err}), nil
		}
		now := l.now()
		e, ok := l.keys.Get(key)
		if ok && !patient {
			var res Result
			if l.atHand(&res, e, int64(n), now) {
				return decision(verdict{res: res}), nil
			}
		}
		e, w, v := l.begin(e, r, 0, patient, 0, now)
		if w == nil {
			return decision(v), nil
		}
		return inside.Decision{}, &asked{l: l, e: e, w: w}
	}
	inside.Held = func(limiter any, key string) inside.Holding {
		l := limiter.(*Limiter)
		e, ok := l.keys.Get(key)
		if !ok {
			return inside.Holding{}
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		return inside.Holding{
			Worth: e.lease.Worth(l.now()), Tokens: e.lease.Balance(math.MinInt64), Part: e.lease.Part(),
			Rate: e.lease.Rate(), Paused: e.lease.Paused(),
		}
	}
	inside.BreakerChanged = func(limiter any) { limiter.(*Limiter).moveQueues() }
}

func decision(v verdict) inside.Decision {
	return inside.Decision{
		Allowed: v.res.Allowed, Source: v.res.Source.String(), RetryAfter: v.res.RetryAfter, Err: v.err,
	}
}

// asked is a request from inside that waits.
type asked struct {
	l *Limiter
	e *entry
	w *waiter // nil: decided,
	v verdict // and so
}

func (a *asked) Decided() (inside.Decision, bool) {
	if a.w != nil {
		select {
		case a.v = <-a.w.done:
			a.w = nil
		default:
			return inside.Decision{}, false
		}
	}
	return decision(a.v), true
}

// errGaveUp stands for the error of the caller's context.
var errGaveUp = errors.New("hybrid: the caller gave up")

func (a *asked) Leave(gaveUp bool) inside.Decision {
	if w := a.w; w != nil {
		var cause error
		if gaveUp {
			cause = errGaveUp
		}
		a.w = nil
		a.v = a.l.leave(a.e, w, cause)
	}
	d, _ := a.Decided()
	return d
}

// elsewhere is Redis in a made-up world, and weather the breaker.
type (
	elsewhere struct{ inside.World }
	weather   struct{ inside.World }
)

var errNotThere = errors.New("hybrid: a made-up world has no such call")

func (elsewhere) Peek(string, remote.Limit, func(remote.Level, error)) error  { return errNotThere }
func (elsewhere) Reset(string, remote.Limit, func(remote.Level, error)) error { return errNotThere }
func (elsewhere) Probe(*remote.Message) error                                 { return errNotThere }
func (elsewhere) Announce(string, time.Duration, bool, func(remote.Fleet, error)) error {
	return errNotThere
}
func (elsewhere) Bodies() uint64 { return 0 }
func (elsewhere) Close() int     { return 0 }

func (weather) Close() {}

func (w weather) State() breaker.State {
	if w.Closed() {
		return breaker.Closed
	}
	return breaker.Open
}
