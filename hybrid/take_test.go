package hybrid_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

func TestWrongRequestsCostNothingAndSendNothing(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerHour(10))
		half := start(t, r, hybrid.PerHour(10), hybrid.WithLocalShare(0.55))
		calls := map[string]func(l *hybrid.Limiter, key string, n int) error{
			"Take": func(l *hybrid.Limiter, key string, n int) error {
				_, err := l.Take(t.Context(), hybrid.Request{Key: key, N: n})
				return err
			},
			"AllowN": func(l *hybrid.Limiter, key string, n int) error {
				_, err := l.AllowN(t.Context(), key, n)
				return err
			},
			"WaitN": func(l *hybrid.Limiter, key string, n int) error {
				_, err := l.WaitN(t.Context(), key, n)
				return err
			},
		}
		tests := []struct {
			lim *hybrid.Limiter
			key string
			n   int
			err error
		}{
			{lim, "", 1, hybrid.ErrInvalidKey},
			{lim, "", 0, hybrid.ErrInvalidKey},
			{lim, "", -1, hybrid.ErrInvalidKey},
			{lim, "k", -1, hybrid.ErrInvalidN},
			{lim, "k", -1 << 31, hybrid.ErrInvalidN},
			{lim, "k", 11, hybrid.ErrExceedsBurst},
			{lim, "k", 1<<31 - 1, hybrid.ErrExceedsBurst},
			{half, "k", 6, hybrid.ErrExceedsBurst}, // 5.5 is what one instance may hold
		}
		for name, call := range calls {
			for _, tt := range tests {
				if err := call(tt.lim, tt.key, tt.n); !errors.Is(err, tt.err) {
					t.Errorf("%s of %d from %q: %v, want %v", name, tt.n, tt.key, err, tt.err)
				}
			}
		}
		if _, err := lim.Allow(t.Context(), ""); !errors.Is(err, hybrid.ErrInvalidKey) {
			t.Errorf("Allow: %v", err)
		}
		if _, err := lim.Wait(t.Context(), ""); !errors.Is(err, hybrid.ErrInvalidKey) {
			t.Errorf("Wait: %v", err)
		}
		if _, err := lim.Peek(t.Context(), ""); !errors.Is(err, hybrid.ErrInvalidKey) {
			t.Errorf("Peek: %v", err)
		}
		if err := lim.Reset(t.Context(), ""); !errors.Is(err, hybrid.ErrInvalidKey) {
			t.Errorf("Reset: %v", err)
		}
		want(t, "dials", r.Counts().Dials, 0)
		want(t, "breaker", lim.Stats().Breaker, "closed")
		want(t, "decisions counted", decisions(lim.Stats()), 0)
		want(t, "keys remembered", lim.Stats().Keys, 0)
		want(t, "left to take", allowN(t, half, "k", 5).Remaining, 5)
	})
}

// decisions is how many decisions the counters know of.
func decisions(s hybrid.Stats) (n uint64) {
	for _, c := range s.Allowed {
		n += c
	}
	for _, c := range s.Refused {
		n += c
	}
	return n
}

func TestRemainingCountsDownByOne(t *testing.T) {
	for _, burst := range []int{1, 2, 5, 10, 100} {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			lim := start(t, r, hybrid.PerHour(60).WithBurst(burst))
			for i := burst - 1; i >= 0; i-- {
				res := allow(t, lim)
				reset := time.Duration(burst-i) * time.Minute
				if !res.Allowed || res.Remaining != i || res.RetryAfter != 0 || res.ResetAfter != reset || res.Limit != lim.Limit() {
					t.Fatalf("of a burst of %d: %+v, want %d remaining and full in %v", burst, res, i, reset)
				}
				if burst <= 10 {
					want(t, "source of an early request", res.Source, hybrid.SourceRedis)
				}
			}
			res := allow(t, lim)
			if res.Allowed || res.Remaining != 0 || res.RetryAfter != time.Minute || res.ResetAfter != time.Duration(burst)*time.Minute {
				t.Errorf("after a burst of %d: %+v", burst, res)
			}
		})
	}
}

func TestRemainingCountsDownForConcurrentCallers(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerHour(10))
		results := make(chan hybrid.Result, 25)
		for range 25 {
			go func() { results <- allow(t, lim) }()
		}
		seen := map[int]int{}
		for range 25 {
			if res := <-results; res.Allowed {
				seen[res.Remaining]++
			} else if res.Remaining != 0 || res.RetryAfter != 6*time.Minute {
				t.Errorf("refused: %+v", res)
			}
		}
		want(t, "what remained for the admitted", fmt.Sprint(seen), "map[0:1 1:1 2:1 3:1 4:1 5:1 6:1 7:1 8:1 9:1]")
	})
}

func TestLimitsOfAllSizesDecideRightly(t *testing.T) {
	tests := []struct {
		limit     hybrid.Limit
		n         int
		remaining int
		reset     time.Duration
	}{
		{hybrid.Per(1, 366*day), 1, 0, 366 * day},
		{hybrid.Per(142, 366*day), 1, 141, 366 * day / 142},
		{hybrid.Per(1, 366*day).WithBurst(142), 142, 0, 142 * 366 * day},
		{hybrid.Per(1, day), 1, 0, day},
		{hybrid.Per(5, 30*day), 1, 4, 6 * day},
		{hybrid.PerHour(1), 1, 0, time.Hour},
		{hybrid.PerHour(1_000_000), 1, 999_999, 3600 * time.Microsecond},
		{hybrid.PerMinute(5), 1, 4, 12 * time.Second},
		{hybrid.PerSecond(1), 1, 0, time.Second},
		{hybrid.PerSecond(10), 3, 7, 300 * time.Millisecond},
		{hybrid.Per(7, 3*time.Second), 7, 0, 3 * time.Second},
		{hybrid.Per(1000, time.Millisecond), 1, 999, time.Microsecond},
		{hybrid.PerSecond(1_000_000), 1, 999_999, time.Microsecond},
		{hybrid.PerSecond(1_000_000_000), 1_000_000, 999_000_000, time.Millisecond},
	}
	for _, tt := range tests {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			lim := start(t, r, tt.limit)
			res := allowN(t, lim, "k", tt.n)
			// The time is a whole number of nanoseconds, and rather late than early.
			late := res.ResetAfter - tt.reset
			if !res.Allowed || res.Source != hybrid.SourceRedis || res.Remaining != tt.remaining || late < 0 || late > time.Microsecond {
				t.Errorf("%v: %d of a full bucket: %+v, want %d remaining and %v", tt.limit, tt.n, res, tt.remaining, tt.reset)
			}
			if res.Remaining > 0 {
				if res := allowN(t, lim, "k", res.Remaining); !res.Allowed || res.Remaining != 0 {
					t.Errorf("%v: the rest: %+v", tt.limit, res)
				}
			}
			res = allow(t, lim)
			one := time.Duration(float64(tt.limit.Period()) / float64(tt.limit.Count()))
			if res.Allowed || res.RetryAfter < one || res.RetryAfter > one+time.Microsecond {
				t.Errorf("%v: an empty bucket: %+v, want a retry after %v", tt.limit, res, one)
			}
			time.Sleep(res.RetryAfter)
			if res := allow(t, lim); !res.Allowed {
				t.Errorf("%v: after RetryAfter: %+v", tt.limit, res)
			}
		})
	}
}

func TestSevenPerThreeSecondsIsExactlyThat(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.Per(7, 3*time.Second))
		want(t, "of a full bucket", drain(t, lim, "k"), 7)
		total := 0
		rounds := runs(20, 1000)
		for range rounds { // whenever it is asked, it is 7 in each 3 s
			n := 0
			for range 30 {
				time.Sleep(100 * time.Millisecond)
				n += drain(t, lim, "k")
			}
			total += n
			want(t, "within 3 s", n, 7)
		}
		want(t, "in all", total, 7*rounds)
	})
}

func TestLongKeysAreTheirOwn(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerHour(2))
		long := strings.Repeat("x", 256)
		keys := []string{
			long, long + "a", long + "b", strings.Repeat("y", 100_000), "k", "k ", "{k}", "k}", "k:l", "k\x00", "\xff", "ключ",
		}
		for _, k := range keys {
			want(t, fmt.Sprintf("first of %.20q (%d bytes)", k, len(k)), allowN(t, lim, k, 1).Remaining, 1)
		}
		for _, k := range keys {
			want(t, fmt.Sprintf("second of %.20q", k), allowN(t, lim, k, 1).Remaining, 0)
			want(t, fmt.Sprintf("third of %.20q", k), allowN(t, lim, k, 1).Allowed, false)
		}
		stored := r.Miniredis().Keys()
		want(t, "keys in Redis", len(stored), len(keys))
		for _, k := range stored {
			if len(k) > 300 {
				t.Errorf("a key of %d bytes in Redis", len(k))
			}
		}
	})
}

func TestWholeBurstAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(10))
		if res := allowN(t, lim, "k", 10); !res.Allowed || res.Remaining != 0 || res.ResetAfter != time.Second {
			t.Errorf("of a full bucket: %+v", res)
		}
		time.Sleep(300 * time.Millisecond)
		res := allowN(t, lim, "k", 10)
		if res.Allowed || res.RetryAfter != 700*time.Millisecond || res.Remaining != 3 || res.ResetAfter != 700*time.Millisecond {
			t.Errorf("of 3 tokens: %+v, want a retry after 700ms", res)
		}
		time.Sleep(res.RetryAfter - time.Microsecond)
		if res := allowN(t, lim, "k", 10); res.Allowed || res.RetryAfter != time.Microsecond {
			t.Errorf("a microsecond early: %+v", res)
		}
		time.Sleep(time.Microsecond)
		if res := allowN(t, lim, "k", 10); !res.Allowed {
			t.Errorf("in time: %+v", res)
		}
	})
}

func TestZeroTokensIsAPeek(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerHour(3))
		allow(t, lim)
		before := r.Miniredis().Dump()
		for name, ask := range map[string]func() (hybrid.Result, error){
			"AllowN": func() (hybrid.Result, error) { return lim.AllowN(t.Context(), "k", 0) },
			"WaitN":  func() (hybrid.Result, error) { return lim.WaitN(t.Context(), "k", 0) },
			"Take":   func() (hybrid.Result, error) { return lim.Take(t.Context(), hybrid.Request{Key: "k"}) },
			"Peek":   func() (hybrid.Result, error) { return lim.Peek(t.Context(), "k") },
		} {
			res, err := ask()
			if err != nil || !res.Allowed || res.Remaining != 2 || res.Source != hybrid.SourceRedis || res.RetryAfter != 0 {
				t.Errorf("%s: %+v, %v", name, res, err)
			}
		}
		want(t, "Redis after peeks", r.Miniredis().Dump(), before)
		want(t, "decisions counted", decisions(lim.Stats()), 1)
		drain(t, lim, "k")
		res := allowN(t, lim, "k", 0)
		if res.Allowed || res.RetryAfter != 20*time.Minute {
			t.Errorf("of an empty bucket: %+v", res)
		}
	})
}

func TestWrongArgumentsComeBeforeTheContextAndClose(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(1))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := lim.AllowN(ctx, "k", 2); !errors.Is(err, hybrid.ErrExceedsBurst) {
			t.Errorf("with a dead context: %v", err)
		}
		if err := lim.Close(); err != nil {
			t.Error(err)
		}
		if _, err := lim.AllowN(t.Context(), "k", -2); !errors.Is(err, hybrid.ErrInvalidN) {
			t.Errorf("after Close: %v", err)
		}
	})
}
