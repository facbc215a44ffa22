package hybrid_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// trip has the limiter find out that Redis is gone.
func trip(t *testing.T, lim *hybrid.Limiter) {
	t.Helper()
	for i := 0; lim.Stats().Breaker == "closed"; i++ {
		if i == 10 {
			t.Fatal("the breaker stays closed")
		}
		allowN(t, lim, "trip", 1)
		settle()
	}
}

func TestWaitInAnOutageIsPacedByTheShare(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(10), hybrid.WithExpectedInstances(5))
		allowN(t, lim, "k", 10)
		r.Kill()
		trip(t, lim)
		var all sync.WaitGroup
		s := newServed()
		for i := range 3 {
			s.queue(t, &all, lim, i, 1)
		}
		want(t, "behind the waiters", allow(t, lim).RetryAfter, 2*time.Second)
		all.Wait()
		want(t, "served at 2 per second", s.String(), "[0@500ms 1@1s 2@1.5s]")
		want(t, "admitted", lim.Stats().Allowed[hybrid.SourceDegraded] >= 3, true)
	})
}

func TestWaitInVainInAnOutageEndsAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		r.Kill()
		lim := start(t, r, hybrid.PerSecond(10), hybrid.WithExpectedInstances(5))
		slow := start(t, r, hybrid.Per(1, 366*day), hybrid.WithExpectedInstances(1_000_000))
		for _, l := range []*hybrid.Limiter{lim, slow} {
			trip(t, l)
			drain(t, l, "k")
			ctx, cancel := context.WithTimeout(t.Context(), 499*time.Millisecond)
			defer cancel()
			d := took(func() {
				if _, err := l.Wait(ctx, "k"); !errors.Is(err, hybrid.ErrWouldExceedDeadline) {
					t.Errorf("%v: %v", l.Limit(), err)
				}
			})
			want(t, "time", d, 0)
		}
	})
}

// TestWaitThroughAnOutage begins to wait while Redis is well. The outage comes
// and goes; nobody is served twice or forgotten.
func TestWaitThroughAnOutage(t *testing.T) {
	for share, first := range map[float64]string{1: "[0@100ms 1@200ms]", 0.5: "[0@200ms]"} {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			limit := hybrid.PerSecond(10)
			lim := start(t, r, limit, hybrid.WithExpectedInstances(10), hybrid.WithLocalShare(share))
			want(t, "of the share", allowN(t, lim, "k", int(10*share)).Allowed, true)
			if rest := int(10 - 10*share); rest > 0 {
				want(t, "the rest", allowN(t, start(t, r, limit), "k", rest).Allowed, true)
			}
			var all sync.WaitGroup
			s := newServed()
			for i := range 12 {
				s.queue(t, &all, lim, i, 1)
			}
			time.Sleep(250 * time.Millisecond)
			want(t, "served while Redis was well", s.String(), first)
			before := len(s.list)
			r.Kill()
			trip(t, lim)
			time.Sleep(2 * time.Second)
			s.mu.Lock()
			meanwhile := len(s.list) - before
			s.mu.Unlock()
			// The share is 1 per second; a lease that is held may go on at its rate.
			if most := int(20*share) + 2; meanwhile < 1 || meanwhile > most {
				t.Errorf("%d served in 2 s of an outage, want 1 to %d: %v", meanwhile, most, s)
			}
			r.RestartWithData()
			begun := time.Now()
			all.Wait()
			// The next probe comes within a second. Two seconds later, when no other
			// instance can be degraded any more, what the root has gained serves all who
			// are left, as far as the share lets it.
			if d := time.Since(begun); d > 4*time.Second {
				t.Errorf("all served %v after Redis was back: %v", d, s)
			}
			at := make([]time.Duration, 12)
			for _, text := range s.list {
				who, when, _ := strings.Cut(text, "@")
				i, _ := strconv.Atoi(who)
				at[i], _ = time.ParseDuration(when)
			}
			want(t, "in order", slices.IsSorted(at), true)
			want(t, "served", len(s.list), 12)
		})
	}
}

func TestWaitersNoticeThatRedisIsBack(t *testing.T) {
	for i, policy := range []hybrid.Option{
		hybrid.WithExpectedInstances(100), // one per 1000 s
		hybrid.WithOutagePolicy(hybrid.FailClosed),
	} {
		later := time.Duration(0)
		if i == 0 {
			later = 1960 * time.Millisecond // when nobody else can be degraded any more
		}
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			back := make(chan time.Time, 1)
			lim := start(t, r, hybrid.Per(1, 10*time.Second), policy, hybrid.WithEvents(func(e hybrid.Event) {
				if e, ok := e.(hybrid.Recovered); ok {
					back <- e.At
				}
			}))
			allow(t, lim)
			r.Kill()
			trip(t, lim)
			var all sync.WaitGroup
			s := newServed()
			s.queue(t, &all, lim, 0, 1)
			time.Sleep(20 * time.Second)
			want(t, "served in the outage", s.String(), "[]")
			r.RestartWithData()
			all.Wait()
			want(t, "served after the recovery", time.Since(<-back), later)
			want(t, "source", lim.Stats().Allowed[hybrid.SourceRedis], 2)
		})
	}
}

func TestWaitWithFailOpenDoesNotWait(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerHour(1), hybrid.WithOutagePolicy(hybrid.FailOpen))
		allow(t, lim)
		var all sync.WaitGroup
		s := newServed()
		s.queue(t, &all, lim, 0, 1)
		time.Sleep(time.Second)
		r.Kill()
		trip(t, lim)
		settle()
		all.Wait()
		want(t, "the one who waited", s.String(), "[0@1s]")
		want(t, "the next", took(func() {
			if _, err := lim.Wait(t.Context(), "k"); err != nil {
				t.Error(err)
			}
		}), 0)
	})
}

// TestFrozenRedisHoldsUpAWaiterForTheTimeOut: then the share decides.
func TestFrozenRedisHoldsUpAWaiterForTheTimeOut(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(10))
		r.Freeze()
		d := took(func() {
			if res, err := lim.Wait(t.Context(), "k"); err != nil || res.Source != hybrid.SourceDegraded {
				t.Errorf("%+v, %v", res, err)
			}
		})
		want(t, "time", d, hybrid.DefaultRemoteTimeout)
	})
}
