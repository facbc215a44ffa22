package sim_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/inside"
	"github.com/resilient-go/limiter/internal/sim"
)

// The figures of these tests are those of a fleet of 20 that shares 1,000 per
// second and is asked for twice as much, where nothing else is said.
func thousand() sim.Scenario {
	return sim.Scenario{
		Instances: 20, Limit: hybrid.PerSecond(1000), Load: 2, RTT: 2 * time.Millisecond, Duration: 20 * time.Second,
	}
}

// fleet is one under any limit. Where it gives few tokens it takes longer to tell.
func fleet(limit hybrid.Limit, instances int, load float64) sim.Scenario {
	s := thousand()
	s.Limit, s.Instances, s.Load = limit, instances, load
	s.Duration = min(600*time.Second, max(10*time.Second, time.Duration(400/perSecond(limit)*1e9)))
	return s
}

func perSecond(l hybrid.Limit) float64 { return float64(l.Count()) / l.Period().Seconds() }

// horizon is the default one: what the figures of calls are stated in.
const horizon = hybrid.DefaultLeaseHorizon

// lease is how long a lease of that horizon lives.
const lease = 5 * horizon

// seeds runs a test for that many seeds, or for more.
func seeds(t *testing.T, n uint64, f func(t *testing.T, seed uint64)) {
	t.Helper()
	if os.Getenv("LIMITER_FULL") != "" {
		n = 10 * n
	}
	for seed := uint64(1); seed <= n; seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { f(t, seed) })
	}
}

// play runs a scenario. Whatever it is about, the bound holds.
func play(t *testing.T, s sim.Scenario) *sim.Report {
	t.Helper()
	r, err := s.Run()
	if err != nil {
		t.Fatal(err)
	}
	if r.WorstWindowExcess > r.Bound {
		t.Errorf("%d admitted in one second of %v: the bound is %v above the rate", r.WorstWindow, s.Limit, r.Bound)
	}
	if s.Outage == 0 && r.Worst > float64(r.Burst) {
		t.Errorf("a window of %v exceeds the rate by %v", s.Limit, r.Worst)
	}
	if r.Offered == 0 {
		t.Error("nobody asked for anything")
	}
	return r
}

// A history is what each instance asked for and got, by time.
type history struct {
	asked, got [][]int64 // by instance, then by sim.BinWidth
}

// watch has a history written of a scenario.
func watch(s *sim.Scenario) *history {
	bins := int(s.Duration/sim.BinWidth) + 1
	h := &history{make([][]int64, s.Instances), make([][]int64, s.Instances)}
	for k := range s.Instances {
		h.asked[k], h.got[k] = make([]int64, bins), make([]int64, bins)
	}
	s.Watch = func(at time.Duration, k int, n int64, d inside.Decision) {
		h.asked[k][at/sim.BinWidth] += n
		if d.Allowed {
			h.got[k][at/sim.BinWidth] += n
		}
	}
	return h
}

// within is the sum over the time from a to b.
func within(bins []int64, a, b time.Duration) float64 {
	sum := int64(0)
	for _, n := range bins[a/sim.BinWidth : b/sim.BinWidth] {
		sum += n
	}
	return float64(sum)
}
