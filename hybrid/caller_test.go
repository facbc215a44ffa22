package hybrid_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

func TestDeadContextCostsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(10))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		expired, cancel := context.WithDeadline(t.Context(), time.Now())
		defer cancel()
		for cause, ctx := range map[error]context.Context{context.Canceled: ctx, context.DeadlineExceeded: expired} {
			for name, err := range map[string]error{
				"Allow": second(lim.Allow(ctx, "k")),
				"Wait":  second(lim.Wait(ctx, "k")),
				"Peek":  second(lim.Peek(ctx, "k")),
				"Reset": lim.Reset(ctx, "k"),
			} {
				if !errors.Is(err, cause) {
					t.Errorf("%s: %v, want %v", name, err, cause)
				}
			}
		}
		want(t, "dials", r.Counts().Dials, 0)
		want(t, "left", allow(t, lim).Remaining, 9)
	})
}

func second[T any](_ T, err error) error { return err }

func TestCallerWhoLeavesIsNotRedisFault(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerHour(100))
		warm(t, lim)
		allow(t, lim)
		r.Delay(30 * time.Millisecond)
		for i := range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Microsecond)
			d := took(func() {
				if _, err := lim.AllowN(ctx, fmt.Sprint(i), 1+i%2); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Allow: %v", err)
				}
				if _, err := lim.Peek(ctx, "k"); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Peek: %v", err)
				}
				if err := lim.Reset(ctx, "other"); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Reset: %v", err)
				}
			})
			cancel()
			want(t, "time until the caller is gone", d, 500*time.Microsecond)
			time.Sleep(31 * time.Millisecond)
		}
		s := lim.Stats()
		want(t, "breaker", s.Breaker, "closed")
		want(t, "connections", r.Counts().Conns <= 3, true)
		want(t, "classes of calls", fmt.Sprint(slices.Sorted(maps.Keys(s.RedisCalls))), "[none]")
		want(t, "tokens lost with their callers", s.TokensLost, 30) // 1 2 1 2 …
		want(t, "left of one", allowN(t, lim, "1", 0).Remaining, 98)
	})
}

func TestCancelStorm(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerHour(60).WithBurst(5000))
		warm(t, lim)
		allow(t, lim)
		r.Delay(20 * time.Millisecond)
		dials := r.Counts().Dials
		var all sync.WaitGroup
		for i := range 1000 {
			ctx, cancel := context.WithCancel(t.Context())
			all.Go(func() {
				if _, err := lim.Allow(ctx, "k"); !errors.Is(err, context.Canceled) {
					t.Errorf("caller %d: %v", i, err)
				}
			})
			all.Go(func() {
				time.Sleep(time.Duration(1+i%15) * time.Millisecond)
				cancel()
			})
		}
		all.Wait()
		time.Sleep(time.Second)
		s := lim.Stats()
		want(t, "breaker", s.Breaker, "closed")
		want(t, "dials", r.Counts().Dials-dials, 0)
		want(t, "decisions", decisions(s), 2)
		want(t, "waiting", s.Waiting, 0)
		// One of them was on its way to Redis, the others gave up in the queue.
		want(t, "tokens lost", s.TokensLost, 1)
		want(t, "left", allowN(t, lim, "k", 0).Remaining, 4998)
		r.Heal()
		want(t, "next decision", allow(t, lim).Source, hybrid.SourceRedis)
	})
}

func TestPermitOfALeaverGoesToTheNext(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerHour(3))
		allow(t, lim)
		r.Delay(20 * time.Millisecond)
		var all sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		all.Go(func() { allow(t, lim) }) // takes the second, and keeps the others together
		time.Sleep(time.Millisecond)
		all.Go(func() { // is charged for the third
			if _, err := lim.Allow(ctx, "k"); !errors.Is(err, context.Canceled) {
				t.Errorf("the one who left: %v", err)
			}
		})
		time.Sleep(time.Millisecond)
		all.Go(func() { // is refused by Redis, and gets it
			if res := allow(t, lim); !res.Allowed || res.Source != hybrid.SourceRedis || res.Remaining != 0 {
				t.Errorf("the next: %+v", res)
			}
		})
		time.Sleep(28 * time.Millisecond)
		cancel()
		all.Wait()
		want(t, "tokens lost", lim.Stats().TokensLost, 0)
		want(t, "left", allow(t, lim).Allowed, false)
	})
}

func TestPermitOfALeaverIsCountedIfNobodyWantsIt(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerHour(10))
		warm(t, lim)
		r.Delay(20 * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := lim.AllowN(ctx, "k", 7); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the one who left: %v", err)
		}
		time.Sleep(time.Second)
		want(t, "tokens lost", lim.Stats().TokensLost, 7)
		want(t, "left", allowN(t, lim, "k", 0).Remaining, 3)
	})
}

func TestLeavingInAnOutageIsTheCallersOwnError(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerHour(10))
		r.Freeze()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		d := took(func() {
			if _, err := lim.Allow(ctx, "k"); err == nil || !errors.Is(err, ctx.Err()) {
				t.Errorf("Allow: %v", err)
			}
		})
		want(t, "time until the caller is gone", d, 10*time.Millisecond)
		want(t, "decisions", decisions(lim.Stats()), 0)
	})
}
