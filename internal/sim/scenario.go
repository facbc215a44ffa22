package sim

import (
	"fmt"
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
	Pulse     time.Duration // silence of this length, then half as long all that was due, at three times the load; 0: steady
	Join      time.Duration // the last instance gets its part of the demand from then on, on top; 0: from the beginning
	RTT       time.Duration
	Horizon   time.Duration // 0: the default
	Share     float64       // 0: the default
	Crash     time.Duration // one instance dies this often, and a new one takes its place; 0: none
	Outage    time.Duration // Redis is gone for that long, from a third of the duration on
	Waits     []Wait
	Duration  time.Duration
	Seed      uint64
	// Begin is a time that is not counted in the use and the calls per second: the
	// fleet finds its pace.
	Begin time.Duration
	// Watch, if set, is told each decision: time, instance, tokens and what it was.
	Watch func(at time.Duration, instance int, n int64, d inside.Decision)
}

// A Wait is one request that waits for its tokens, besides the demand.
type Wait struct {
	At       time.Duration
	Instance int
	N        int
}

func (s *Scenario) perSecond() float64 {
	return float64(s.Limit.Count()) / s.Limit.Period().Seconds()
}

// Requests is how many requests are to be expected.
func (s *Scenario) Requests() float64 { return s.Load * s.perSecond() * s.Duration.Seconds() }

// Timeout is the remote time-out of the instances: the default, or three round
// trips if those take longer, which is what package hybrid asks for at least.
func (s *Scenario) Timeout() time.Duration { return max(hybrid.DefaultRemoteTimeout, 3*s.RTT) }

// check reports what makes no scenario. What the limiters check is left to them.
func (s *Scenario) check() error {
	positive := func(x float64) bool { return x > 0 && !math.IsInf(x, 0) }
	switch {
	case s.Instances < 1:
		return fmt.Errorf("sim: %d instances: want at least one", s.Instances)
	case s.Limit.Count() < 1 || s.Limit.Period() <= 0:
		return fmt.Errorf("sim: the limit is %v: want a rate", s.Limit)
	case !positive(s.Load):
		return fmt.Errorf("sim: a load of %v: want a positive number", s.Load)
	case s.Duration <= 0 || s.Begin >= s.Duration:
		return fmt.Errorf("sim: %v from %v on: want some time", s.Duration, s.Begin)
	}
	for _, d := range []time.Duration{s.Shift, s.Pulse, s.Join, s.RTT, s.Crash, s.Outage, s.Begin} {
		if d < 0 {
			return fmt.Errorf("sim: a time of %v", d)
		}
	}
	return nil
}

// Run plays a scenario.
func (s *Scenario) Run() (*Report, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	weights, err := Weights(s.Skew, s.Instances)
	if err != nil {
		return nil, err
	}
	w := New(s.Seed)
	w.Network.RTT = s.RTT
	p := &play{
		Scenario: s, w: w, fleet: make([]*Instance, s.Instances), load: newDemand(s, weights),
		ledger:    NewLedger(s.perSecond()),
		reference: NewBucket(s.perSecond(), float64(s.Limit.Burst())),
		decisions: map[kind]int64{},
		admitted:  make([]int64, s.Instances),
		offered:   make([]int64, s.Instances),
		waited:    make([]time.Duration, len(s.Waits)),
	}
	for k := range p.fleet {
		if err := p.start(k); err != nil {
			return nil, err
		}
	}
	p.disturb()
	p.run()
	return p.report(), nil
}

// A play is a scenario under way.
type play struct {
	*Scenario
	w     *World
	fleet []*Instance
	load  *demand

	ledger    *Ledger
	reference *Bucket
	decisions map[kind]int64
	admitted  []int64 // by instance
	offered   []int64
	crashes   []Crash
	waited    []time.Duration
	opened    uint64

	before struct{ admitted, reference, calls int64 } // when counting began
}

// A kind of decision.
type kind struct {
	allowed bool
	source  string
}

// start puts a new instance in the place k.
func (p *play) start(k int) error {
	o := []hybrid.Option{hybrid.WithExpectedInstances(p.Instances), hybrid.WithName("sim")}
	if p.Horizon != 0 {
		o = append(o, hybrid.WithLeaseHorizon(p.Horizon))
	}
	if p.Share != 0 {
		o = append(o, hybrid.WithLocalShare(p.Share))
	}
	i, err := p.w.Start(p.Limit, p.Timeout(), o...)
	if err == nil {
		p.fleet[k] = i
	}
	return err
}

// disturb plans what happens besides the demand.
func (p *play) disturb() {
	w := p.w
	if p.Crash > 0 {
		w.every(p.Crash, func() {
			k := w.Rand.IntN(len(p.fleet))
			p.opened += p.fleet[k].gate.opened
			p.fleet[k].Kill()
			_ = p.start(k) // the options were good before
			p.crashes = append(p.crashes, Crash{w.Now(), k})
		})
	}
	if p.Outage > 0 {
		w.At(p.Duration/3, func() { w.Network.Up = false })
		w.At(p.Duration/3+p.Outage, func() { w.Network.Up = true })
	}
	for j, wait := range p.Waits {
		p.waited[j] = -1
		w.At(wait.At, func() {
			p.fleet[wait.Instance].Ask(theKey, wait.N, true, func(d inside.Decision) {
				p.decided(wait.Instance, int64(wait.N), d)
				if d.Allowed {
					p.waited[j] = w.Now() - wait.At
				}
			})
		})
	}
}

func (w *World) every(d time.Duration, f func()) {
	w.plan(w.now+int64(d), func() {
		f()
		w.every(d, f)
	})
}

const theKey = "key"

// run sends the demand through the fleet.
func (p *play) run() {
	done := make([]func(inside.Decision), len(p.fleet))
	for k := range done {
		done[k] = func(d inside.Decision) { p.decided(k, 1, d) }
	}
	if p.Begin > 0 {
		p.w.At(p.Begin, func() {
			p.before.admitted, p.before.reference, p.before.calls = p.ledger.Admitted, p.reference.Admitted, int64(p.w.calls)
		})
	}
	for {
		at, k := p.load.next()
		if at >= p.Duration {
			break
		}
		p.w.Run(at)
		p.offered[k]++
		p.reference.Take(at, 1)
		p.fleet[k].Ask(theKey, 1, false, done[k])
	}
	p.w.Run(p.Duration)
}

// decided notes a decision for n tokens.
func (p *play) decided(k int, n int64, d inside.Decision) {
	p.decisions[kind{d.Allowed, d.Source}]++
	if d.Allowed {
		p.ledger.Admit(p.w.Now(), n)
		p.admitted[k] += n
	}
	if p.Watch != nil {
		p.Watch(p.w.Now(), k, n, d)
	}
}
