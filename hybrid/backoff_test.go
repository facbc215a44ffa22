package hybrid_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
)

func backoff(t *testing.T, base, most time.Duration, jitter hybrid.Jitter) hybrid.Backoff {
	t.Helper()
	b, err := hybrid.NewBackoff(base, most, jitter)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestBackoffStaysBetweenItsBounds for tries up to the largest, also where the
// doubled base does not fit an int64.
func TestBackoffStaysBetweenItsBounds(t *testing.T) {
	for _, c := range []struct{ base, most time.Duration }{
		{1, 1},
		{1, 2},
		{time.Millisecond, 10 * time.Second},
		{time.Second, time.Second},
		{3, math.MaxInt64},
		{math.MaxInt64, math.MaxInt64},
		{7 * time.Hour, 7*time.Hour + 1},
	} {
		for _, try := range []int{math.MinInt, -1, 0, 1, 2, 3, 10, 30, 31, 32, 61, 62, 63, 64, 65, 1000, math.MaxInt32} {
			whole := c.base
			for i := 0; i < try && whole < c.most; i++ {
				if whole > c.most/2 {
					whole = c.most
				} else {
					whole *= 2
				}
			}
			want(t, "no jitter", backoff(t, c.base, c.most, hybrid.NoJitter).Delay(try), whole)
			for range 20 {
				if d := backoff(t, c.base, c.most, hybrid.FullJitter).Delay(try); d < 1 || d > whole {
					t.Fatalf("full jitter of %v: try %d waits %v of %v", c, try, d, whole)
				}
				if d := backoff(t, c.base, c.most, hybrid.EqualJitter).Delay(try); d < whole-whole/2 || d > whole || d < 1 {
					t.Fatalf("equal jitter of %v: try %d waits %v of %v", c, try, d, whole)
				}
			}
		}
	}
}

// TestJitterSpreadsOverItsWholeRange: the mean is where it belongs, and both ends
// are drawn.
func TestJitterSpreadsOverItsWholeRange(t *testing.T) {
	for jitter, least := range map[hybrid.Jitter]time.Duration{hybrid.FullJitter: 1, hybrid.EqualJitter: 500} {
		b := backoff(t, 1000, 1000, jitter)
		lowest, highest, sum := time.Duration(math.MaxInt64), time.Duration(0), 0.0
		const n = 20_000
		for range n {
			d := b.Delay(0)
			lowest, highest, sum = min(lowest, d), max(highest, d), sum+float64(d)
		}
		want(t, "the lowest", lowest, least)
		want(t, "the highest", highest, 1000)
		if mean, middle := sum/n, float64(least+1000)/2; math.Abs(mean-middle) > 15 { // seven deviations
			t.Errorf("the mean is %v, want about %v", mean, middle)
		}
	}
}

func TestZeroBackoffHasTheDefaults(t *testing.T) {
	var highest time.Duration
	for range 2000 {
		highest = max(highest, hybrid.Backoff{}.Delay(100))
	}
	if highest > hybrid.DefaultMaxBackoff || highest < hybrid.DefaultMaxBackoff*9/10 {
		t.Errorf("the longest of 2000 delays is %v", highest)
	}
	for range 100 {
		if d := (hybrid.Backoff{}).Delay(0); d < 1 || d > hybrid.DefaultBackoff {
			t.Errorf("the first delay is %v", d)
		}
	}
}

func TestWrongBackoffsAreRefused(t *testing.T) {
	for _, c := range []struct {
		base, most time.Duration
		jitter     hybrid.Jitter
	}{
		{0, 1, hybrid.FullJitter}, {-1, 1, hybrid.FullJitter}, {2, 1, hybrid.NoJitter}, {1, 0, hybrid.EqualJitter}, {1, 1, 3},
	} {
		_, err := hybrid.NewBackoff(c.base, c.most, c.jitter)
		if refused := new(hybrid.ConfigError); !errors.As(err, &refused) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
