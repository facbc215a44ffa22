package load

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestQuantilesOfKnownDurations(t *testing.T) {
	var h Hist
	if got := h.Quantile(0.99); got != 0 {
		t.Errorf("a quantile of nothing is %v", got)
	}
	for i := 1; i <= 100; i++ {
		h.Add(time.Duration(i)) // small ones are kept exactly
	}
	for q, want := range map[float64]time.Duration{0.001: 1, 0.01: 1, 0.5: 50, 0.501: 51, 0.99: 99, 0.999: 100, 1: 100} {
		if got := h.Quantile(q); got != want {
			t.Errorf("quantile %v of 1…100 is %d, want %d", q, got, want)
		}
	}
	h.Add(-time.Second)
	if got := h.Quantile(0.001); got != 0 || h.Count() != 101 || h.Max() != 100 {
		t.Errorf("after a negative duration the least is %v, the count %d, the longest %v", got, h.Count(), h.Max())
	}
}

// A quantile is never below the true one, and at most one part in 64 above it.
func TestQuantilesAreClose(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var parts [3]Hist
	var all []time.Duration
	for i := range 30_000 {
		d := time.Duration(r.Uint64() >> (1 + r.IntN(63)))
		parts[i%3].Add(d)
		all = append(all, d)
	}
	var h Hist
	for i := range parts {
		h.Merge(&parts[i])
	}
	slices.Sort(all)
	for _, q := range []float64{0.0001, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 0.9999, 1} {
		want := all[max(0, int(q*float64(len(all))+0.999999)-1)]
		got := h.Quantile(q)
		if got < want || float64(got-want) > float64(want)/64 {
			t.Errorf("quantile %v is %d, the true one %d", q, got, want)
		}
	}
	if h.Count() != 30_000 || h.Max() != all[len(all)-1] {
		t.Errorf("count %d, longest %v, want 30000 and %v", h.Count(), h.Max(), all[len(all)-1])
	}
}

// Each value lies in its range, and the ranges follow each other without a gap.
func TestRangesAreWhole(t *testing.T) {
	for i := range slot(1<<62) + 1 {
		last := uint64(upper(i))
		if slot(last) != i || slot(last+1) != i+1 {
			t.Fatalf("range %d ends at %d, which is in range %d, and the next value in %d", i, last, slot(last), slot(last+1))
		}
	}
}
