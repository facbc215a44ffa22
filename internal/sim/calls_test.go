package sim_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
)

// loads are the demands, in multiples of the rate, that calls are counted for.
var loads = []float64{0.5, 1, 2, 10}

// Where the rate gives each holder three tokens in a horizon, or more, calls go
// by the horizon, and neither the limit nor the demand counts.
func TestCallsGoByTheHorizon(t *testing.T) {
	for _, c := range []struct {
		limit     hybrid.Limit
		instances int
	}{
		{hybrid.PerSecond(1000), 20},
		{hybrid.PerSecond(300), 20},
		{hybrid.PerSecond(60), 4},
		{hybrid.PerSecond(15), 1},
	} {
		for _, load := range loads {
			t.Run(fmt.Sprintf("%v on %d at %v", c.limit, c.instances, load), func(t *testing.T) {
				t.Parallel()
				seeds(t, 1, func(t *testing.T, seed uint64) {
					s := fleet(c.limit, c.instances, load)
					s.Duration = 20 * time.Second // the first second is one of many
					s.Seed = seed
					r := play(t, s)
					most := 1.2 * float64(c.instances) / horizon.Seconds()
					t.Logf("%.1f of %.1f calls per second, use %.4f", r.CallsPerSecond, most, r.Use)
					if r.CallsPerSecond > most {
						t.Errorf("%.1f calls per second: want %.1f at most", r.CallsPerSecond, most)
					}
				})
			})
		}
	}
}

// Where it gives less, or where a part of the burst is not worth a lease, each
// request may need a call, but a denial that was just heard of saves the next ones.
func TestCallsOfSmallLimits(t *testing.T) {
	tight := hybrid.PerSecond(100).WithBurst(10)
	for _, limit := range []hybrid.Limit{hybrid.PerSecond(50), tight, hybrid.PerSecond(10), hybrid.PerSecond(5)} {
		for _, instances := range []int{20, 4} {
			for _, load := range loads {
				t.Run(fmt.Sprintf("%v on %d at %v", limit, instances, load), func(t *testing.T) {
					t.Parallel()
					seeds(t, 1, func(t *testing.T, seed uint64) {
						s := fleet(limit, instances, load)
						s.Seed = seed
						r := play(t, s)
						rate := perSecond(limit)
						most := math.Min(load*rate, rate) + float64(instances)/horizon.Seconds()
						if limit == tight && instances == 4 {
							most = math.Max(most, rate/0.75) // a quarter of the calls are refused
						}
						t.Logf("%.1f of %.1f calls per second, use %.4f", r.CallsPerSecond, most, r.Use)
						if r.CallsPerSecond > most {
							t.Errorf("%.1f calls per second: want %.1f at most", r.CallsPerSecond, most)
						}
					})
				})
			}
		}
	}
}

// The limit of one user, who is served by one instance, at half of it.
func TestALimitPerUserSavesCalls(t *testing.T) {
	seeds(t, 3, func(t *testing.T, seed uint64) {
		s := fleet(hybrid.PerSecond(10), 1, 0.5)
		s.Seed = seed
		r := play(t, s)
		t.Logf("%.3f", r.CallsPerDecision)
		if r.CallsPerDecision > 0.3 {
			t.Errorf("%.3f calls per decision: want 0.3", r.CallsPerDecision)
		}
		if r.WrongRefusals > 0 {
			t.Errorf("%.3f of the requests are refused", r.WrongRefusals)
		}
	})
}

// A thousand instances are no other than twenty.
func TestCallsOfAThousandInstances(t *testing.T) {
	t.Parallel()
	s := thousand()
	s.Instances, s.Limit, s.Duration, s.Begin = 1000, hybrid.PerSecond(20_000), 4*time.Second, 2*time.Second
	s.Seed = 1
	r := play(t, s)
	if most := 1.2 * 1000 / horizon.Seconds(); r.CallsPerSecond > most {
		t.Errorf("%.1f calls per second: want %.1f at most", r.CallsPerSecond, most)
	}
	if r.Use < 0.98 {
		t.Errorf("%.4f of what one bucket admits: want 0.98", r.Use)
	}
}
