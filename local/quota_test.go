package local_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/resilient-go/limiter/local"
)

const year = 366 * 86400.0 // seconds

func TestQuotaStartsAtItsLevel(t *testing.T) {
	for _, c := range []struct {
		level float64
		want  int64
	}{
		{10, 10}, {1e12, 10}, {math.Inf(1), 10}, {7, 7}, {6.9, 6}, {1, 1}, {0.9, 0}, {0, 0}, {-3, 0}, {math.Inf(-1), 0},
	} {
		q := local.NewQuota(1, 10, c.level, second)
		if got := q.Tokens(second); got != c.want {
			t.Errorf("a level of %v gives %d tokens, want %d", c.level, got, c.want)
		}
		if got, want := q.Full(second), c.want == 10; got != want {
			t.Errorf("at a level of %v full is %v", c.level, got)
		}
		if q.Take(c.want+1, second) || c.want > 0 && !q.Take(c.want, second) {
			t.Errorf("a level of %v does not give %d tokens exactly", c.level, c.want)
		}
	}
}

func TestQuotaBurstIsAtLeastOne(t *testing.T) {
	for _, burst := range []int64{math.MinInt64, -1, 0, 1} {
		q := local.NewQuota(0.5, burst, 1, 0)
		if q.Burst() != 1 || !q.Take(1, 0) || q.Take(1, 2*second-1) || !q.Take(1, 2*second) {
			t.Errorf("a burst of %d does not give one token every 2 s", burst)
		}
	}
}

func TestQuotaRefusesNothingAndLess(t *testing.T) {
	q := local.NewQuota(1, 10, 4, 0)
	for _, n := range []int64{0, -1, -1000, math.MinInt64, math.MinInt32, 11, 1 << 32, 1<<32 + 1, math.MaxInt64} {
		if q.Take(n, 0) {
			t.Errorf("%d were had", n)
		}
	}
	if got := q.Tokens(0); got != 4 {
		t.Errorf("then there are %d tokens, want the 4 from before", got)
	}
}

func TestQuotaLowerNeverRaises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate, burst := anyRate().Draw(t, "rate"), rapid.Int64Range(1, 1000).Draw(t, "burst")
		q := local.NewQuota(rate, burst, rapid.Float64Range(-1, 2000).Draw(t, "start"), 0)
		now := rapid.Int64Range(0, 100*second).Draw(t, "now")
		before := q.Tokens(now)
		level := rapid.Float64Range(-1000, 2000).Draw(t, "level")
		q.Lower(level, now)
		after := q.Tokens(now)
		if want := min(before, max(0, int64(math.Floor(level)))); after != want {
			t.Fatalf("%d lowered to %v are %d, want %d", before, level, after, want)
		}
	})
}

func TestQuotaRetryAfterIsExact(t *testing.T) {
	for _, c := range []struct {
		name      string
		perSecond float64
		burst, n  int64
		want      time.Duration
	}{
		{"one of 5 per minute", 5.0 / 60, 5, 1, 12 * time.Second},
		{"5 of 5 per minute", 5.0 / 60, 5, 5, time.Minute},
		{"one of 3 per second, rounded up", 3, 3, 1, 333333334},
		{"one of 7 per 3 seconds, rounded up", 7.0 / 3, 7, 1, 428571429},
		{"1 per 366 days", 1 / year, 1, 1, 366 * 24 * time.Hour},
		{"a thousandth of that", 1 / year / 1000, 1, 1, math.MaxInt64 / 2},
		{"a billion per second", 1e9, 1e9, 1, 1},
		{"all of a billion per second", 1e9, 1e9, 1e9, time.Second},
		{"more than the burst", 10, 5, 100, 10 * time.Second},
		{"much more than the burst", 1e-6, 1, 4e9, math.MaxInt64 / 2},
	} {
		q := local.NewQuota(c.perSecond, c.burst, 0, 0)
		if got := q.RetryAfter(c.n, 0); (got - c.want).Abs() > c.want>>52 {
			t.Errorf("%s: RetryAfter is %d ns, want %d", c.name, got, c.want)
		}
	}
	q := local.NewQuota(1, 5, 5, 0)
	if got := q.RetryAfter(5, 0); got != 1 {
		t.Errorf("what is there already takes %v, want 1 ns", got)
	}
}

// Whoever waits as long as he was told gets what he asked for.
func TestQuotaRetryAfterThenTake(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := anyRate().Draw(t, "rate")
		burst := int64(math.Max(1, math.Min(anyBurst().Draw(t, "burst"), rate*1e9)))
		now := rapid.Int64Range(0, 1000*second).Draw(t, "start")
		q := local.NewQuota(rate, burst, rapid.Float64Range(0, float64(burst)).Draw(t, "level"), now)
		for range rapid.IntRange(1, 20).Draw(t, "rounds") {
			if now > 100*366*day { // instants end after 292 years
				break
			}
			n := rapid.Int64Range(1, burst).Draw(t, "n")
			d := q.RetryAfter(n, now)
			if d < 1 || d >= math.MaxInt64/2 {
				t.Fatalf("%d of %d at %v per second take %v", n, burst, rate, d)
			}
			now += int64(d)
			if !q.Take(n, now) {
				t.Fatalf("%d were refused after the %d ns that they were to take", n, d)
			}
			now += rapid.Int64Range(0, int64(d)).Draw(t, "pause")
		}
	})
}
