package sim

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
)

func TestWeights(t *testing.T) {
	for _, c := range []struct {
		skew string
		want []float64
	}{
		{"", []float64{0.25, 0.25, 0.25, 0.25}},
		{"even", []float64{0.25, 0.25, 0.25, 0.25}},
		{"0", []float64{0.25, 0.25, 0.25, 0.25}},
		{"zipf", []float64{12. / 25, 6. / 25, 4. / 25, 3. / 25}},
		{"1", []float64{12. / 25, 6. / 25, 4. / 25, 3. / 25}},
		{"2", []float64{144. / 205, 36. / 205, 16. / 205, 9. / 205}},
		{"90/10", []float64{0.9, 1. / 30, 1. / 30, 1. / 30}},
		{"1/0", []float64{1, 0, 0, 0}},
		{"70/7", []float64{10. / 11, 1. / 33, 1. / 33, 1. / 33}},
	} {
		got, err := Weights(c.skew, 4)
		if err != nil {
			t.Errorf("%q: %v", c.skew, err)
			continue
		}
		for k := range got {
			if math.Abs(got[k]-c.want[k]) > 1e-12 {
				t.Errorf("%q: weights %v, want %v", c.skew, got, c.want)
			}
		}
	}
	if got, err := Weights("90/10", 1); err != nil || got[0] != 1 {
		t.Errorf("one instance gets %v, %v: want all", got, err)
	}
}

func TestWeightsThatAreNone(t *testing.T) {
	for _, skew := range []string{
		"odd", "-1", "nan", "inf", "1e9", "90/10/5", "90/", "/10", "0/10", "90/-10", "90/10x", "nan/1", "1/inf", " 1", "1.2 ",
	} {
		if w, err := Weights(skew, 3); err == nil {
			t.Errorf("%q gives %v, want an error", skew, w)
		}
	}
}

// The chance of each index is its weight, exactly.
func TestPickerHasTheWeights(t *testing.T) {
	for _, skew := range []string{"even", "zipf", "2.5", "90/10", "1/0", "1000"} {
		for _, n := range []int{1, 2, 3, 20, 1000} {
			want, err := Weights(skew, n)
			if err != nil {
				t.Fatal(err)
			}
			p := newPicker(want)
			got := make([]float64, n)
			for k := range n {
				got[k] += p.part[k] / float64(n)
				got[p.alias[k]] += (1 - p.part[k]) / float64(n)
			}
			for k := range n {
				if math.Abs(got[k]-want[k]) > 1e-9 {
					t.Fatalf("%q of %d: index %d has the chance %v, want %v", skew, n, k, got[k], want[k])
				}
			}
		}
	}
}

// arrivals are the requests of a scenario: how many at each instance, in each
// tenth of a second.
func arrivals(t *testing.T, s *Scenario) [][]int {
	t.Helper()
	weights, err := Weights(s.Skew, s.Instances)
	if err != nil {
		t.Fatal(err)
	}
	d := newDemand(s, weights)
	counts := make([][]int, s.Instances)
	for k := range counts {
		counts[k] = make([]int, s.Duration/BinWidth)
	}
	last := time.Duration(0)
	for {
		at, k := d.next()
		if at < last {
			t.Fatalf("a request at %v after one at %v", at, last)
		}
		if last = at; at >= s.Duration {
			return counts
		}
		counts[k][at/BinWidth]++
	}
}

func sum(counts []int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// near reports whether a count is what a Poisson process gives, within five
// deviations.
func near(got int, want float64) bool { return math.Abs(float64(got)-want) <= 5*math.Sqrt(want) }

func TestDemandIsTheLoad(t *testing.T) {
	for _, c := range []struct {
		name  string
		s     Scenario
		parts []float64 // of all that is asked for, by instance
	}{
		{"even", Scenario{}, []float64{0.25, 0.25, 0.25, 0.25}},
		{"skewed", Scenario{Skew: "70/30"}, []float64{0.7, 0.1, 0.1, 0.1}},
		{"moving", Scenario{Shift: time.Second}, []float64{0.25, 0.25, 0.25, 0.25}},
		{"pulses", Scenario{Pulse: 2 * time.Second}, []float64{0.25, 0.25, 0.25, 0.25}},
		{"joining", Scenario{Join: 15 * time.Second}, []float64{0.25, 0.25, 0.25, 0.125}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.s
			s.Instances, s.Limit, s.Load, s.Duration, s.Seed = 4, hybrid.PerSecond(500), 3, 30*time.Second, 7
			for k, counts := range arrivals(t, &s) {
				if want := c.parts[k] * s.Requests(); !near(sum(counts), want) {
					t.Errorf("instance %d is asked %d times, want about %.0f", k, sum(counts), want)
				}
			}
		})
	}
}

func TestDemandMovesAndRests(t *testing.T) {
	base := Scenario{Instances: 4, Limit: hybrid.PerSecond(1000), Load: 2, Duration: 6 * time.Second, Seed: 1}
	// asks reports in which half of each second somebody is asked.
	asks := func(counts []int) (when []bool) {
		for half := range slices.Chunk(counts, 5) {
			when = append(when, sum(half) > 0)
		}
		return when
	}
	const yes, no = true, false
	for _, c := range []struct {
		name   string
		change func(*Scenario)
		first  []bool // by half seconds
		last   []bool
	}{
		{"steady", func(*Scenario) {}, slices.Repeat([]bool{yes}, 12), slices.Repeat([]bool{yes}, 12)},
		{
			"moves", func(s *Scenario) { s.Shift = 1500 * time.Millisecond },
			[]bool{yes, yes, yes, no, no, no, yes, yes, yes, no, no, no},
			[]bool{no, no, no, yes, yes, yes, no, no, no, yes, yes, yes},
		},
		{
			"pulses", func(s *Scenario) { s.Pulse = time.Second },
			[]bool{no, no, yes, no, no, yes, no, no, yes, no, no, yes},
			[]bool{no, no, yes, no, no, yes, no, no, yes, no, no, yes},
		},
		{
			"joins", func(s *Scenario) { s.Join = 2 * time.Second },
			slices.Repeat([]bool{yes}, 12),
			[]bool{no, no, no, no, yes, yes, yes, yes, yes, yes, yes, yes},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := base
			c.change(&s)
			counts := arrivals(t, &s)
			if got := asks(counts[0]); !slices.Equal(got, c.first) {
				t.Errorf("the first instance is asked %v, want %v", got, c.first)
			}
			if got := asks(counts[3]); !slices.Equal(got, c.last) {
				t.Errorf("the last instance is asked %v, want %v", got, c.last)
			}
		})
	}
}
