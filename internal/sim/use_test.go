package sim_test

import (
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/sim"
)

// Under overload the fleet admits nearly what one bucket would, wherever the
// demand falls.
func TestTheLimitIsUsed(t *testing.T) {
	for _, c := range []struct {
		name   string
		least  float64
		change func(*sim.Scenario)
	}{
		{"even", 0.98, func(*sim.Scenario) {}},
		{"Zipf", 0.97, func(s *sim.Scenario) { s.Skew = "zipf" }},
		{"90 per cent on one instance", 0.97, func(s *sim.Scenario) { s.Skew = "90/10" }},
		{"pulses", 0.95, func(s *sim.Scenario) { s.Pulse = 2 * time.Second }},
		{"moves every second", 0.90, func(s *sim.Scenario) { s.Shift = time.Second }},
		{"moves every two seconds", 0.90, func(s *sim.Scenario) { s.Shift = 2 * time.Second }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			seeds(t, 3, func(t *testing.T, seed uint64) {
				s := thousand()
				s.Seed = seed
				c.change(&s)
				r := play(t, s)
				t.Logf("use %.4f, %.1f calls per second", r.Use, r.CallsPerSecond)
				if r.Use < c.least {
					t.Errorf("%.4f of what one bucket admits: want %v", r.Use, c.least)
				}
			})
		})
	}
}

func TestSmallLimitsAreUsed(t *testing.T) {
	for _, limit := range []hybrid.Limit{hybrid.PerSecond(5), hybrid.PerMinute(100)} {
		t.Run(limit.String(), func(t *testing.T) {
			t.Parallel()
			seeds(t, 3, func(t *testing.T, seed uint64) {
				s := fleet(limit, 20, 2)
				s.Duration = min(600*time.Second, 5*s.Duration/2)
				s.Seed = seed
				r := play(t, s)
				t.Logf("use %.4f, %.1f calls per second", r.Use, r.CallsPerSecond)
				if r.Use < 0.97 {
					t.Errorf("%.4f of what one bucket admits: want 0.97", r.Use)
				}
			})
		})
	}
}

// With half the demand that the limit allows, leases get into nobody's way.
func TestBelowTheLimitNobodyIsRefused(t *testing.T) {
	for _, skew := range []string{"even", "zipf", "90/10"} {
		t.Run(skew, func(t *testing.T) {
			t.Parallel()
			seeds(t, 3, func(t *testing.T, seed uint64) {
				s := thousand()
				s.Load, s.Skew, s.Seed = 0.5, skew, seed
				r := play(t, s)
				t.Logf("wrong %.4f, use %.4f, %.1f calls per second", r.WrongRefusals, r.Use, r.CallsPerSecond)
				if r.WrongRefusals > 0.005 {
					t.Errorf("%.4f of the requests are refused although one bucket admits them", r.WrongRefusals)
				}
			})
		})
	}
	for _, limit := range []hybrid.Limit{hybrid.PerSecond(5), hybrid.PerSecond(10), hybrid.PerSecond(50), hybrid.PerMinute(100)} {
		t.Run(limit.String(), func(t *testing.T) {
			t.Parallel()
			seeds(t, 3, func(t *testing.T, seed uint64) {
				s := fleet(limit, 20, 0.5)
				s.Duration = min(600*time.Second, 5*s.Duration/2)
				s.Seed = seed
				r := play(t, s)
				t.Logf("wrong %.4f, use %.4f, %.1f calls per second", r.WrongRefusals, r.Use, r.CallsPerSecond)
				if r.WrongRefusals > 0.005 {
					t.Errorf("%.4f of the requests are refused although one bucket admits them", r.WrongRefusals)
				}
			})
		})
	}
}

// A local share caps what one instance takes, in every window, and leaves the
// rest to the others.
func TestALocalShareCapsOneInstance(t *testing.T) {
	seeds(t, 3, func(t *testing.T, seed uint64) {
		s := thousand()
		s.Skew, s.Share, s.Seed = "90/10", 0.3, seed
		h := watch(&s)
		r := play(t, s)
		one := sim.NewLedger(300)
		for bin, n := range h.got[0] {
			one.Admit(time.Duration(bin)*sim.BinWidth, n)
		}
		// Bins blur the time by their width.
		if most := 300 + 300*sim.BinWidth.Seconds(); one.Worst() > most {
			t.Errorf("the instance exceeds its rate of 300 by %v, its burst is 300", one.Worst())
		}
		if got, want := float64(r.PerInstance[0]), 300+300*s.Duration.Seconds(); got < 0.97*want {
			t.Errorf("the instance got %v of %v that it may have", got, want)
		}
		others := int64(0)
		for _, n := range r.PerInstance[1:] {
			others += n
		}
		if asked := within(h.asked[0], 0, s.Duration); float64(others) < 0.99*(float64(r.Offered)-asked) {
			t.Errorf("the others got %d, and asked for %v, while there was room", others, float64(r.Offered)-asked)
		}
	})
}
