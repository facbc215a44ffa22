package sim_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/sim"
)

// eventful is a scenario in which all that can happen does.
func eventful(seed uint64) sim.Scenario {
	return sim.Scenario{
		Instances: 5, Limit: hybrid.PerSecond(200), Load: 2, Skew: "zipf", Shift: 700 * time.Millisecond,
		RTT: 3 * time.Millisecond, Horizon: 100 * time.Millisecond, Share: 0.5,
		Crash: 800 * time.Millisecond, Outage: time.Second, Duration: 6 * time.Second, Seed: seed,
		Waits: []sim.Wait{{At: 500 * time.Millisecond, Instance: 2, N: 20}},
	}
}

func TestOneSeedGivesOneCourse(t *testing.T) {
	run := func(seed uint64) *sim.Report {
		s := eventful(seed)
		r, err := s.Run()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	one := run(1)
	if again := run(1); !reflect.DeepEqual(one, again) {
		t.Errorf("the same seed gave\n%+v and\n%+v", one, again)
	}
	if other := run(2); reflect.DeepEqual(one.Bins, other.Bins) {
		t.Error("another seed gave the same")
	}
}

// What a report says agrees with itself.
func TestReportAddsUp(t *testing.T) {
	s := eventful(3)
	h := watch(&s)
	r := play(t, s)
	allowed, decisions := int64(0), int64(0)
	for source, n := range r.BySource {
		decisions += n
		switch source {
		case "lease", "redis", "degraded":
			allowed += n
		}
	}
	got, inBins := int64(0), int64(0)
	for k, n := range r.PerInstance {
		got += n
		if n != int64(within(h.got[k], 0, s.Duration)) {
			t.Errorf("instance %d got %d, and was seen to get %v", k, n, within(h.got[k], 0, s.Duration))
		}
	}
	for _, n := range r.Bins {
		inBins += n
	}
	switch wait := int64(s.Waits[0].N); {
	case r.Waited[0] < 0:
		t.Error("the wait was not served")
	case r.Admitted != allowed+wait-1, r.Admitted != got, r.Admitted != inBins:
		t.Errorf("%d admitted: by source %d, with a wait for %d; by instance %d, in bins %d", r.Admitted, allowed, wait, got, inBins)
	case len(r.Bins) != 60:
		t.Errorf("%d bins of a tenth in 6 s", len(r.Bins))
	case len(r.Crashes) != 7:
		t.Errorf("%d crashes, want 7", len(r.Crashes))
	case r.Opened == 0 || r.BySource["degraded"] == 0:
		t.Errorf("the outage was not noticed: breakers opened %d times, %v", r.Opened, r.BySource)
	case r.Scripts == 0 || r.Scripts >= r.Calls:
		t.Errorf("%d scripts for %d messages, of which the outage lost some", r.Scripts, r.Calls)
	}
	// Requests whose instance died are nobody's decisions.
	if lost := r.Offered + 1 - decisions; lost < 0 || lost > 7 {
		t.Errorf("%d of %d requests are decided", decisions, r.Offered)
	}
}

// The time before Begin does not count.
func TestTheBeginningDoesNotCount(t *testing.T) {
	s := thousand()
	s.Duration, s.Load = 8*time.Second, 0.5
	all := play(t, s)
	s.Begin = 4 * time.Second
	late := play(t, s)
	if late.Calls != all.Calls || late.CallsPerSecond >= all.CallsPerSecond {
		t.Errorf("%.1f calls per second in the second half and %.1f in all, want fewer", late.CallsPerSecond, all.CallsPerSecond)
	}
}

func TestScenariosThatAreNone(t *testing.T) {
	for name, change := range map[string]func(*sim.Scenario){
		"no instances":           func(s *sim.Scenario) { s.Instances = 0 },
		"no limit":               func(s *sim.Scenario) { s.Limit = hybrid.Limit{} },
		"no end of the limit":    func(s *sim.Scenario) { s.Limit = hybrid.Unlimited },
		"an invalid burst":       func(s *sim.Scenario) { s.Limit = s.Limit.WithBurst(-1) },
		"no load":                func(s *sim.Scenario) { s.Load = 0 },
		"no time":                func(s *sim.Scenario) { s.Duration = 0 },
		"a begin after the end":  func(s *sim.Scenario) { s.Begin = s.Duration },
		"a time that goes back":  func(s *sim.Scenario) { s.Crash = -1 },
		"a skew that is none":    func(s *sim.Scenario) { s.Skew = "odd" },
		"a share of nothing":     func(s *sim.Scenario) { s.Share = 1e-9 },
		"a horizon of no length": func(s *sim.Scenario) { s.Horizon = 1 },
	} {
		s := thousand()
		change(&s)
		if _, err := s.Run(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
