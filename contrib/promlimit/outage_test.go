package promlimit_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
)

// TestCountersNeverDecrease through an outage and after it: to Prometheus a smaller
// number is a process that began anew. In the end no counter of the story is zero.
func TestCountersNeverDecrease(t *testing.T) {
	var before map[string]float64
	for i, families := range story(t) {
		now := map[string]float64{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				maps.Copy(now, counters(f, m))
			}
		}
		for name, value := range now {
			if value < before[name] {
				t.Errorf("%s fell from %v to %v at scrape %d", name, before[name], value, i)
			}
		}
		// All series are there from the first scrape on.
		if series := fmt.Sprint(slices.Sorted(maps.Keys(now))); before != nil {
			want(t, "series", series, fmt.Sprint(slices.Sorted(maps.Keys(before))))
		}
		before = now
	}
	sums := map[string]float64{}
	for name, value := range before {
		family, _, _ := strings.Cut(name, " ")
		sums[family] += value
	}
	want(t, "families of counters", len(sums), 20)
	for name, sum := range sums {
		if sum == 0 && name != "resilient_limiter_shadowed_total" && // a limiter in earnest has none
			name != "resilient_limiter_state_lost_total" { // after the outage the buckets may be full
			t.Errorf("%s is 0: the story does not try it", name)
		}
	}
}

// counters are the values of a metric that may not decrease, by series.
func counters(f *dto.MetricFamily, m *dto.Metric) map[string]float64 {
	name := f.GetName()
	for _, l := range m.GetLabel() {
		name += " " + l.GetName() + "=" + l.GetValue()
	}
	switch {
	case m.Counter != nil:
		return map[string]float64{name: m.GetCounter().GetValue()}
	case m.Histogram != nil:
		h := m.GetHistogram()
		values := map[string]float64{name + " count": float64(h.GetSampleCount()), name + " sum": h.GetSampleSum()}
		for _, b := range h.GetBucket() {
			values[fmt.Sprint(name, " le=", b.GetUpperBound())] = float64(b.GetCumulativeCount())
		}
		return values
	}
	return nil
}

func TestHistogramsAgreeWithThemselves(t *testing.T) {
	observed := map[string]uint64{}
	for _, families := range story(t) {
		calls := map[string]uint64{}
		for _, f := range families {
			if f.GetName() == "resilient_limiter_redis_calls_total" {
				for _, m := range f.GetMetric() {
					calls[label(m, "operation")] += uint64(m.GetCounter().GetValue())
				}
			}
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if h := m.GetHistogram(); h != nil {
					isConsistent(t, f.GetName(), h)
					observed[f.GetName()] += h.GetSampleCount()
					if op := label(m, "operation"); op != "" {
						want(t, "calls of "+op, h.GetSampleCount(), calls[op])
					}
				}
			}
		}
	}
	want(t, "histograms", len(observed), 2)
	for name, n := range observed {
		if n == 0 {
			t.Errorf("%s observed nothing", name)
		}
	}
}

// isConsistent checks that the buckets grow up to the count, and that the sum is
// one that such observations can have.
func isConsistent(t *testing.T, name string, h *dto.Histogram) {
	t.Helper()
	var count uint64
	least, most, bound := 0.0, 0.0, 0.0
	for i, b := range h.GetBucket() {
		if b.GetCumulativeCount() < count || i > 0 && b.GetUpperBound() <= bound {
			t.Fatalf("%s: bucket %v holds %d after %d", name, b.GetUpperBound(), b.GetCumulativeCount(), count)
		}
		n := float64(b.GetCumulativeCount() - count)
		least += n * bound
		most += n * b.GetUpperBound()
		count, bound = b.GetCumulativeCount(), b.GetUpperBound()
	}
	if h.GetSampleCount() < count {
		t.Fatalf("%s: count %d, but the buckets hold %d", name, h.GetSampleCount(), count)
	}
	above := float64(h.GetSampleCount() - count)
	least += above * bound
	const rounding = 1e-6
	if s := h.GetSampleSum(); s < least-rounding || above == 0 && s > most+rounding {
		t.Errorf("%s: sum %v, want from %v to %v", name, s, least, most)
	}
}

// TestNoKeyIsSeen by Prometheus, and the number of series does not grow with them.
func TestNoKeyIsSeen(t *testing.T) {
	allowed := []string{"limiter", "outcome", "source", "operation", "class", "state", "mode"}
	for _, families := range story(t) {
		series := 0
		for _, f := range families {
			if strings.Contains(f.String(), secret) {
				t.Errorf("a key is seen in %v", f)
			}
			for _, m := range f.GetMetric() {
				series++
				if h := m.GetHistogram(); h != nil {
					series += len(h.GetBucket()) + 2 // the bucket of all, the sum and the count
				}
				for _, l := range m.GetLabel() {
					if !slices.Contains(allowed, l.GetName()) {
						t.Errorf("%s has the label %s", f.GetName(), l.GetName())
					}
				}
			}
		}
		want(t, "series", series, 179)
	}
}
