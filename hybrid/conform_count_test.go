package hybrid_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// atOnce has callers ask for one token each at the same time, spread over the
// limiters, and returns how many were admitted.
func atOnce(t *testing.T, lims []*hybrid.Limiter, key string, callers int) int {
	t.Helper()
	var admitted atomic.Int64
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for i := range callers {
		wg.Go(func() {
			<-begin
			res, err := lims[i%len(lims)].Allow(t.Context(), key)
			if err != nil {
				t.Error(err)
			}
			if res.Source == hybrid.SourceDegraded {
				t.Error("a degraded decision")
			}
			if res.Allowed {
				admitted.Add(1)
			}
		})
	}
	close(begin)
	wg.Wait()
	return int(admitted.Load())
}

// Of many callers on two instances just the limit is admitted, however they race.
func TestExactlyTheLimitOfConcurrentCallers(t *testing.T) {
	sizes := []struct{ limit, callers int }{{5, 10}, {5, 250}, {100, 150}}
	check := func(t *testing.T, r redisServer, algo hybrid.Algorithm) {
		for _, s := range sizes {
			lims := clients(t, r, 2, hybrid.Per(s.limit, time.Hour), hybrid.WithAlgorithm(algo), hybrid.WithRemoteTimeout(240*time.Millisecond))
			warm(t, lims[0])
			warm(t, lims[1])
			key := anyKey(t)
			got := atOnce(t, lims, key, s.callers)
			if s.limit > 5 && (algo == hybrid.TokenBucket || algo == hybrid.FixedWindow) {
				got += drain(t, lims[0], key) + drain(t, lims[1], key) // what was on lease elsewhere
			}
			if got != s.limit {
				t.Errorf("%d of %d callers were admitted, want %d", got, s.callers, s.limit)
			}
		}
	}
	t.Run("miniredis", func(t *testing.T) {
		conform(t, func(t *testing.T, r *redistest.Mini, algo hybrid.Algorithm) {
			for range 3 {
				check(t, r, algo)
				time.Sleep(3 * time.Hour) // and when windows have ended
			}
		})
	})
	t.Run("redis-server", func(t *testing.T) {
		conformReal(t, func(t *testing.T, r *redistest.Redis, algo hybrid.Algorithm) { check(t, r, algo) })
	})
}

// Ten thousand calls of one instant: a counter of whole seconds or milliseconds, or a
// list of instants, would take some for one.
func TestManyCallsOfOneInstant(t *testing.T) {
	conform(t, func(t *testing.T, r *redistest.Mini, algo hybrid.Algorithm) {
		lims := clients(t, r, 2, hybrid.PerMinute(1000), hybrid.WithAlgorithm(algo))
		warm(t, lims[0])
		if got := atOnce(t, lims, "k", 10_000); got != 1000 {
			t.Errorf("%d were admitted, want 1000", got)
		}
	})
}

// A request of n tokens has all or none, and what is refused costs nothing.
func TestRequestsOfSeveralTokens(t *testing.T) {
	check := func(t *testing.T, r redisServer, algo hybrid.Algorithm) {
		lim, key := start(t, r, hybrid.Per(10, time.Hour), hybrid.WithAlgorithm(algo), hybrid.WithRemoteTimeout(240*time.Millisecond)), anyKey(t)
		if algo == hybrid.RollingWindow {
			warm(t, lim)
		}
		for i, step := range []struct {
			n         int
			allowed   bool
			remaining int
		}{{4, true, 6}, {7, false, 6}, {6, true, 0}, {1, false, 0}, {10, false, 0}} {
			res := allowN(t, lim, key, step.n)
			if res.Allowed != step.allowed || res.Remaining != step.remaining || step.allowed != (res.RetryAfter == 0) {
				t.Errorf("request %d for %d: %+v", i, step.n, res)
			}
		}
		if _, err := lim.AllowN(t.Context(), key, 11); !errors.Is(err, hybrid.ErrExceedsBurst) {
			t.Errorf("more than the limit: %v", err)
		}
	}
	t.Run("miniredis", func(t *testing.T) {
		conform(t, func(t *testing.T, r *redistest.Mini, algo hybrid.Algorithm) { check(t, r, algo) })
	})
	t.Run("redis-server", func(t *testing.T) {
		conformReal(t, func(t *testing.T, r *redistest.Redis, algo hybrid.Algorithm) { check(t, r, algo) })
	})
}

// A look tells what is left and changes nothing; a reset gives everything back.
func TestLooksAndResets(t *testing.T) {
	conform(t, func(t *testing.T, r *redistest.Mini, algo hybrid.Algorithm) {
		lims := clients(t, r, 2, hybrid.Per(10, time.Hour), hybrid.WithAlgorithm(algo))
		for _, lim := range lims {
			res := allowN(t, lim, "k", 0)
			want(t, "left of an unknown key", res.Remaining, 10)
			want(t, "reset of an unknown key", res.ResetAfter, 0)
		}
		if keys := r.Miniredis().Keys(); len(keys) != 0 {
			t.Errorf("a look stored %v", keys)
		}
		want(t, "taken", drain(t, lims[0], "k"), 10)
		before := r.Miniredis().Dump()
		res := allowN(t, lims[1], "k", 0)
		if res.Allowed || res.Remaining != 0 || res.RetryAfter <= 0 || res.ResetAfter < res.RetryAfter {
			t.Errorf("a look at an empty key: %+v", res)
		}
		want(t, "what is stored after a look", r.Miniredis().Dump(), before)
		if err := lims[0].Reset(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		want(t, "taken after the reset", drain(t, lims[0], "k"), 10)
	})
	t.Run("redis-server", func(t *testing.T) {
		conformReal(t, func(t *testing.T, r *redistest.Redis, algo hybrid.Algorithm) {
			lim, key := start(t, r, hybrid.Per(10, time.Hour), hybrid.WithAlgorithm(algo), hybrid.WithRemoteTimeout(240*time.Millisecond)), anyKey(t)
			want(t, "left of an unknown key", allowN(t, lim, key, 0).Remaining, 10)
			want(t, "taken", drain(t, lim, key), 10)
			for range 3 {
				if res := allowN(t, lim, key, 0); res.Allowed || res.Remaining != 0 || res.RetryAfter <= 0 || res.ResetAfter < res.RetryAfter {
					t.Errorf("a look at an empty key: %+v", res)
				}
			}
			if err := lim.Reset(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			want(t, "taken after the reset", drain(t, lim, key), 10)
		})
	})
}

// Who comes back after RetryAfter is served, and before that is not.
func TestRetryAfterIsRight(t *testing.T) {
	conform(t, func(t *testing.T, r *redistest.Mini, algo hybrid.Algorithm) {
		refused := 0
		for i, limit := range []hybrid.Limit{
			hybrid.PerSecond(10), hybrid.Per(7, 3*time.Second), hybrid.PerMinute(90), hybrid.Per(1, 24*time.Hour),
		} {
			for n := 1; n <= limit.Count(); n += 1 + n/2 {
				lim := start(t, r, limit, hybrid.WithAlgorithm(algo), hybrid.WithName(string(rune('a'+i))+string(rune('a'+n))))
				for range 3 {
					drain(t, lim, "k")
					time.Sleep(limit.Period() / 7)
				}
				drain(t, lim, "k")
				time.Sleep(201 * time.Millisecond) // the refusal stands no more: Redis is asked
				res := allowN(t, lim, "k", n)
				if res.Allowed {
					continue
				}
				if res.Source != hybrid.SourceRedis || res.RetryAfter <= 0 || res.RetryAfter > limit.Period()*11/10 {
					t.Fatalf("%v: %d: %+v", limit, n, res)
				}
				refused++
				soon := limit.Period() / 1000 // Redis counts whole micro-tokens
				time.Sleep(res.RetryAfter - soon)
				if early := allowN(t, lim, "k", n); early.Allowed {
					t.Errorf("%v: %d were admitted before %v", limit, n, res.RetryAfter)
				}
				time.Sleep(2 * soon)
				if late := allowN(t, lim, "k", n); !late.Allowed {
					t.Errorf("%v: %d were refused after %v: %+v", limit, n, res.RetryAfter, late)
				}
			}
		}
		if refused < 10 {
			t.Errorf("only %d were refused: the test shows nothing", refused)
		}
	})
}

// From one per day to a billion per second everything is exact.
func TestLimitsOfAllSizes(t *testing.T) {
	conform(t, func(t *testing.T, r *redistest.Mini, algo hybrid.Algorithm) {
		for _, limit := range []hybrid.Limit{
			hybrid.Per(1, 24*time.Hour), hybrid.Per(1, 366*24*time.Hour), hybrid.Per(7, 3*time.Second), hybrid.PerSecond(1),
			hybrid.Per(3, time.Millisecond), hybrid.PerSecond(10_000), hybrid.PerSecond(1_000_000), hybrid.PerSecond(1_000_000_000),
		} {
			if algo == hybrid.SlidingLog && limit.Count() > 10_000 {
				continue // it says so, see TestAlgorithmsRefuseOtherLimits
			}
			lim := start(t, r, limit, hybrid.WithAlgorithm(algo))
			n := limit.Count()
			res := allowN(t, lim, "k", n)
			if !res.Allowed || res.Remaining != 0 || res.Source != hybrid.SourceRedis {
				t.Errorf("%v: all at once: %+v", limit, res)
			}
			res = allowN(t, lim, "k", n)
			if res.Allowed || res.RetryAfter > limit.Period()*11/10+time.Microsecond || res.RetryAfter < limit.Period()-time.Microsecond {
				t.Errorf("%v: all again: %+v", limit, res)
			}
			time.Sleep(res.RetryAfter)
			if res = allowN(t, lim, "k", n); !res.Allowed {
				t.Errorf("%v: all when they are due: %+v", limit, res)
			}
		}
	})
	t.Run("redis-server", func(t *testing.T) {
		conformReal(t, func(t *testing.T, r *redistest.Redis, algo hybrid.Algorithm) {
			for _, limit := range []hybrid.Limit{
				hybrid.Per(1, 24*time.Hour), hybrid.Per(7, 366*24*time.Hour), hybrid.PerHour(9_999), hybrid.PerHour(100_000_000), hybrid.PerSecond(1_000_000_000),
			} {
				if algo == hybrid.SlidingLog && limit.Count() > 10_000 {
					continue
				}
				lim, key := start(t, r, limit, hybrid.WithAlgorithm(algo), hybrid.WithRemoteTimeout(240*time.Millisecond)), anyKey(t)
				n := limit.Count()
				if res := allowN(t, lim, key, n); !res.Allowed || res.Remaining != 0 || res.Source != hybrid.SourceRedis {
					t.Errorf("%v: all at once: %+v", limit, res)
				}
				if limit.Period() < time.Minute {
					continue // all of them may be back
				}
				if res := allowN(t, lim, key, n); res.Allowed || res.RetryAfter > limit.Period()*11/10 || res.RetryAfter < limit.Period()-time.Minute {
					t.Errorf("%v: all again: %+v", limit, res)
				}
			}
		})
	})
}

// Limits that an algorithm has no meaning for are refused when they are given.
func TestAlgorithmsRefuseOtherLimits(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		for _, c := range []struct {
			algo  hybrid.Algorithm
			limit hybrid.Limit
			ok    bool
		}{
			{hybrid.SlidingLog, hybrid.PerMinute(10_000), true},
			{hybrid.SlidingLog, hybrid.PerMinute(10_001), false},
			{hybrid.RollingWindow, hybrid.PerMinute(10_001), true},
			{hybrid.FixedWindow, hybrid.PerMinute(10).WithBurst(9), false},
			{hybrid.SlidingLog, hybrid.PerMinute(10).WithBurst(11), false},
			{hybrid.RollingWindow, hybrid.PerMinute(10).WithBurst(11), false},
			{hybrid.LeakyBucket, hybrid.PerMinute(10).WithBurst(11), true},
			{hybrid.FixedWindow, hybrid.Per(10, 999*time.Microsecond), false},
			{hybrid.FixedWindow, hybrid.Per(10, time.Millisecond), true},
			{hybrid.RollingWindow + 1, hybrid.PerMinute(10), false},
		} {
			lim, err := hybrid.New(r.Client(advised), c.limit, hybrid.WithAlgorithm(c.algo), hybrid.WithLogger(silent))
			var bad *hybrid.ConfigError
			switch {
			case c.ok && err != nil, !c.ok && (!errors.As(err, &bad) || bad.Field != "WithAlgorithm"):
				t.Errorf("%v %v: %v", c.algo, c.limit, err)
			case c.ok:
				if err := lim.SetLimit(hybrid.PerMinute(20_000).WithBurst(1)); c.algo != hybrid.LeakyBucket && !errors.As(err, &bad) {
					t.Errorf("%v: set to another limit: %v", c.algo, err)
				}
				_ = lim.Close()
			}
		}
	})
}
