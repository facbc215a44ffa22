package load

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestExcess(t *testing.T) {
	ms := func(at ...int) (times []time.Duration) {
		for _, x := range at {
			times = append(times, time.Duration(x)*time.Millisecond)
		}
		return times
	}
	for name, test := range map[string]struct {
		at   []time.Duration
		rate float64
		want float64
	}{
		"nothing":                 {nil, 10, 0},
		"one":                     {ms(7), 10, 1},
		"at the rate":             {ms(0, 100, 200, 300), 10, 1},
		"slower":                  {ms(0, 1000, 2000), 10, 1},
		"at once":                 {ms(5, 5, 5), 10, 3},
		"in any order":            {ms(200, 0, 200, 100), 10, 2},
		"two bursts far apart":    {ms(0, 0, 1000, 1000), 10, 2},
		"two bursts close by":     {ms(0, 0, 0, 100, 100, 100), 10, 5},
		"the worst is in between": {ms(0, 500, 500, 500, 1500), 10, 3},
	} {
		if got := Excess(test.at, test.rate); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// The answer is that of trying all windows.
func TestExcessIsTheWorstOfAllWindows(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var at []time.Duration
		for range 1 + r.IntN(40) {
			at = append(at, time.Duration(r.IntN(3000))*time.Millisecond)
		}
		rate := 1 + 30*r.Float64()
		sorted := slices.Sorted(slices.Values(at))
		want := 0.0
		for i := range sorted {
			for j := i; j < len(sorted); j++ {
				want = max(want, float64(j-i+1)-rate*(sorted[j]-sorted[i]).Seconds())
			}
		}
		if got := Excess(at, rate); math.Abs(got-want) > 1e-6 {
			t.Fatalf("%v at %v: %v, want %v", at, rate, got, want)
		}
	}
}

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		xs   []float64
		want float64
	}{
		{nil, 0},
		{[]float64{5}, 5},
		{[]float64{3, 1}, 2},
		{[]float64{9, 1, 4}, 4},
		{[]float64{4, 8, 1, 2}, 3},
	} {
		given := slices.Clone(test.xs)
		if got := Median(test.xs); got != test.want || !slices.Equal(test.xs, given) {
			t.Errorf("the median of %v is %v, want %v, left as %v", given, got, test.want, test.xs)
		}
	}
}
