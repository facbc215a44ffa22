package hybrid_test

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

func TestLimitByKeyThatIsInvalidKeepsTheOldOne(t *testing.T) {
	for name, bad := range map[string]func() hybrid.Limit{
		"the zero limit":  func() hybrid.Limit { return hybrid.Limit{} },
		"a negative rate": func() hybrid.Limit { return hybrid.PerSecond(-1) },
		"no burst":        func() hybrid.Limit { return hybrid.PerSecond(5).WithBurst(0) },
		"too precise":     func() hybrid.Limit { return hybrid.Per(7, 3*time.Second).WithBurst(2_000_000_000) },
		"too small":       func() hybrid.Limit { return hybrid.PerHour(1) }, // for the local share
		"a panic":         func() hybrid.Limit { panic("no such tenant") },
	} {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			events := new(journal)
			var good atomic.Bool
			good.Store(true)
			lim := start(t, r, slow, named, hybrid.WithEvents(events.add), hybrid.WithLocalShare(0.5), hybrid.WithLimitByKey(func(key string) hybrid.Limit {
				if good.Load() && key == "k" {
					return hybrid.PerHour(6)
				}
				return bad()
			}))
			reported := func(times int) {
				t.Helper()
				n := 0
				for _, e := range events.all() {
					m, ok := e.(hybrid.Misconfigured)
					var config *hybrid.ConfigError
					if !ok || m.Class != "limit" || !strings.HasPrefix(m.Key, "rl:{n:") || !errors.As(m.Err, &config) {
						t.Errorf("%s: event %+v", name, e)
					}
					n++
				}
				want(t, name+": reports", n, times)
			}
			want(t, name+": at first", allow(t, lim).Limit, hybrid.PerHour(6))
			reported(0)
			good.Store(false)
			time.Sleep(200 * time.Millisecond)
			want(t, name+": then", allow(t, lim).Limit, hybrid.PerHour(6))
			reported(1)
			want(t, name+": the first time that of the limiter", allowN(t, lim, "new", 1).Limit, slow)
			reported(1) // once a minute
			begun := time.Now()
			for time.Since(begun) < 59*time.Second {
				allow(t, lim)
				time.Sleep(time.Second)
			}
			reported(1)
			time.Sleep(time.Second)
			want(t, name+": a minute later", allow(t, lim).Limit, hybrid.PerHour(6))
			reported(2)
			// The key that never had one of its own goes by the limiter's, the other one does not.
			setLimit(t, 1, hybrid.PerHour(20), lim)
			want(t, name+": of the one", allowN(t, lim, "new", 1).Limit, hybrid.PerHour(20))
			want(t, name+": of the other", allow(t, lim).Limit, hybrid.PerHour(6))
			good.Store(true)
			time.Sleep(200 * time.Millisecond)
			want(t, name+": in the end", allow(t, lim).Limit, hybrid.PerHour(6))
		})
	}
}

// The function runs under no lock: it may use the limiter.
func TestLimitByKeyMayUseTheLimiter(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		var lim *hybrid.Limiter
		lim = start(t, r, slow, named, hybrid.WithLimitByKey(func(key string) hybrid.Limit {
			if key != "k" {
				return hybrid.PerHour(7)
			}
			if !allowN(t, lim, "audit", 1).Allowed || lim.Stats().Keys == 0 {
				return hybrid.Blocked
			}
			_, _ = lim.Peek(t.Context(), "audit")
			_ = lim.Reset(t.Context(), "audit")
			if err := lim.SetLimit(hybrid.PerHour(30)); err != nil {
				t.Error(err)
			}
			return hybrid.PerHour(5)
		}))
		for range 3 {
			want(t, "limit", allow(t, lim).Limit, hybrid.PerHour(5))
			want(t, "limit of the other", allowN(t, lim, "audit", 1).Limit, hybrid.PerHour(7))
			time.Sleep(200 * time.Millisecond)
		}
		want(t, "Limit", lim.Limit(), hybrid.PerHour(30))
	})
}

func TestSlowLimitByKeyDelaysOnlyItsKey(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		var asked, running atomic.Int64
		pause := time.Duration(0)
		lim := start(t, r, slow, named, hybrid.WithLimitByKey(func(key string) hybrid.Limit {
			if key != "k" {
				return hybrid.PerHour(7)
			}
			if running.Add(1) > 1 {
				t.Error("it is asked for a key while it runs for the same key")
			}
			defer running.Add(-1)
			time.Sleep(pause)
			return hybrid.PerHour(int(9 - asked.Add(1)))
		}))
		want(t, "limit", allow(t, lim).Limit, hybrid.PerHour(8))
		pause = time.Second
		time.Sleep(200 * time.Millisecond)
		begun := time.Now()
		var all sync.WaitGroup
		all.Go(func() { // who asks it waits for it
			want(t, "limit", allow(t, lim).Limit, hybrid.PerHour(7))
			want(t, "waited", time.Since(begun), time.Second)
		})
		settle()
		for range 90 { // the others go on with the old limit
			d := took(func() {
				want(t, "limit meanwhile", allow(t, lim).Limit, hybrid.PerHour(8))
				want(t, "limit of another key", allowN(t, lim, "other", 1).Limit, hybrid.PerHour(7))
				lim.Stats()
			})
			want(t, "waited meanwhile", d, 0)
			time.Sleep(10 * time.Millisecond)
		}
		all.Wait()
		time.Sleep(100 * time.Millisecond) // a horizon has not passed since the answer
		want(t, "limit then", allow(t, lim).Limit, hybrid.PerHour(7))
		want(t, "asked", asked.Load(), 2)
	})
}

// A function that ends its goroutine leaves nobody waiting.
func TestLimitByKeyThatEndsItsGoroutine(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		var asked atomic.Int64
		lim := start(t, r, slow, named, hybrid.WithLimitByKey(func(string) hybrid.Limit {
			if asked.Add(1) == 1 {
				time.Sleep(time.Millisecond)
				runtime.Goexit()
			}
			return hybrid.PerHour(5)
		}))
		var all sync.WaitGroup
		all.Go(func() { allow(t, lim) })
		settle()
		want(t, "limit", allow(t, lim).Limit, slow)
		all.Wait()
		time.Sleep(200 * time.Millisecond)
		want(t, "limit a horizon later", allow(t, lim).Limit, hybrid.PerHour(5))
	})
}
