package sim

import (
	"math"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/inside"
)

// A Scenario is a fleet under one load, on one key.
type Scenario struct {
	Instances int
	Limit     hybrid.Limit
	Load      float64       // demand in multiples of the rate
	Skew      string        // see Weights
	Shift     time.Duration // demand moves from one half of the fleet to the other this often; 0: it stays
	Pulse     time.Duration // silence of this length between pulses of half of it at three times the load; 0: none
	RTT       time.Duration
	Horizon   time.Duration // 0: the default
	Share     float64       // 0: 1
	Crash     time.Duration // one instance dies this often, and a new one takes its place; 0: none
	Outage    time.Duration // Redis is gone for that long, from a third of the duration on
	Duration  time.Duration
	Seed      uint64
	// Begin is a time that is not counted in the use: the fleet finds its pace.
	Begin time.Duration
	// Watch, if set, is told each admission: time and instance.
	Watch func(at time.Duration, instance int)
}

func (s *Scenario) perSecond() float64 {
	return float64(s.Limit.Count()) / s.Limit.Period().Seconds()
}

// A Report is what came of a Scenario.
type Report struct {
	Offered, Admitted int64
	Reference         int64   // what one bucket, asked for each request, would have admitted
	Use               float64 // Admitted of Reference, after Begin
	WrongRefusals     float64 // part of the offered that was refused beyond what the reference refused
	Worst             float64 // see Ledger.Worst
	WorstWindow       int64   // see Ledger.WorstWindow
	WorstWindowExcess float64 // WorstWindow less the rate of a second
	Burst             int64
	Calls             uint64
	CallsPerSecond    float64
	CallsPerDecision  float64
	Fairness          float64 // the least part of its demand that an instance got, of the most
	BySource          map[string]int64
	PerInstance       []int64 // admitted
	Bins              []int64 // admitted in each BinWidth
	Opened            uint64  // how often a breaker opened
}

// Run plays a scenario.
func (s *Scenario) Run() (*Report, error) {
	w := New(s.Seed)
	w.Network.RTT = s.RTT
	weights, err := Weights(s.Skew, s.Instances)
	if err != nil {
		return nil, err
	}
	start := func() (*Instance, error) { return w.Start(s.Limit, 0, s.options()...) }
	fleet := make([]*Instance, s.Instances)
	for k := range fleet {
		if fleet[k], err = start(); err != nil {
			return nil, err
		}
	}
	if s.Crash > 0 {
		w.every(s.Crash, func() {
			k := w.Rand.IntN(len(fleet))
			fleet[k].Kill()
			fleet[k], _ = start() // the options were good before
		})
	}
	if s.Outage > 0 {
		w.At(s.Duration/3, func() { w.Network.Up = false })
		w.At(s.Duration/3+s.Outage, func() { w.Network.Up = true })
	}
	return s.play(w, fleet, newDemand(s, weights)), nil
}

func (s *Scenario) options() []hybrid.Option {
	o := []hybrid.Option{hybrid.WithExpectedInstances(s.Instances), hybrid.WithName("sim")}
	if s.Horizon > 0 {
		o = append(o, hybrid.WithLeaseHorizon(s.Horizon))
	}
	if s.Share > 0 {
		o = append(o, hybrid.WithLocalShare(s.Share))
	}
	return o
}

func (w *World) every(d time.Duration, f func()) {
	w.plan(w.now+int64(d), func() {
		f()
		w.every(d, f)
	})
}

// play sends the load through the fleet.
func (s *Scenario) play(w *World, fleet []*Instance, load *demand) *Report {
	r := &Report{Burst: int64(s.Limit.Burst()), BySource: map[string]int64{}, PerInstance: make([]int64, len(fleet))}
	ledger := NewLedger(s.perSecond())
	reference := NewBucket(s.perSecond(), float64(s.Limit.Burst()))
	offered := make([]int64, len(fleet))
	var before, referenceBefore, callsBefore int64
	counting := s.Begin == 0
	decided := make([]func(inside.Decision), len(fleet))
	for k := range fleet {
		decided[k] = func(d inside.Decision) {
			source := d.Source
			if !d.Allowed {
				source = "refused " + source
			}
			r.BySource[source]++
			if !d.Allowed {
				return
			}
			ledger.Admit(w.Now(), 1)
			r.PerInstance[k]++
			if s.Watch != nil {
				s.Watch(w.Now(), k)
			}
		}
	}
	for {
		at, k := load.next()
		if at >= s.Duration {
			break
		}
		w.Run(at)
		if !counting && at >= s.Begin {
			counting = true
			before, referenceBefore, callsBefore = ledger.Admitted, reference.Admitted, int64(w.calls)
		}
		r.Offered++
		offered[k]++
		reference.Take(at, 1)
		fleet[k].Ask("key", 1, false, decided[k])
	}
	w.Run(s.Duration)
	for _, i := range fleet {
		r.Opened += i.gate.opened
	}
	seconds := (s.Duration - s.Begin).Seconds()
	calls := int64(w.calls) - callsBefore
	r.Admitted, r.Reference, r.Calls = ledger.Admitted, reference.Admitted, w.calls
	r.Use = float64(r.Admitted-before) / math.Max(1, float64(r.Reference-referenceBefore))
	r.WrongRefusals = math.Max(0, float64(r.Reference-r.Admitted)) / math.Max(1, float64(r.Offered))
	r.Worst, r.WorstWindow, r.Bins = ledger.Worst(), ledger.WorstWindow, ledger.Bins
	r.WorstWindowExcess = float64(ledger.WorstWindow) - s.perSecond()
	r.CallsPerSecond = float64(calls) / seconds
	r.CallsPerDecision = float64(w.calls) / math.Max(1, float64(r.Offered))
	r.Fairness = fairness(r.PerInstance, offered)
	return r
}

func fairness(admitted, offered []int64) float64 {
	least, most := math.Inf(1), 0.0
	for k := range admitted {
		if offered[k] > 0 {
			part := float64(admitted[k]) / float64(offered[k])
			least, most = math.Min(least, part), math.Max(most, part)
		}
	}
	if most == 0 {
		return 1
	}
	return least / most
}
