package sim

import (
	"math"
	"time"
)

// A Report is what came of a Scenario.
type Report struct {
	Offered, Admitted int64   // requests, tokens
	Reference         int64   // what one bucket, asked for each request, would have admitted
	Use               float64 // Admitted of Reference, after Begin
	WrongRefusals     float64 // part of the offered that was refused beyond what the reference refused
	Worst             float64 // see Ledger.Worst
	WorstWindow       int64   // see Ledger.WorstWindow
	WorstWindowExcess float64 // WorstWindow less the rate of a second
	Burst             int64
	Bound             float64 // what WorstWindowExcess must not pass
	Calls             uint64  // messages that were sent
	Scripts           uint64  // scripts that Redis ran
	CallsPerSecond    float64 // after Begin
	CallsPerDecision  float64
	Fairness          float64 // the least part of its demand that an instance got, of the most
	// BySource counts decisions: by "lease", "redis" and so on those that admitted,
	// by "refused redis" and so on the others.
	BySource    map[string]int64
	PerInstance []int64 // admitted
	Bins        []int64 // admitted in each BinWidth
	Opened      uint64  // how often a breaker opened
	Crashes     []Crash
	Waited      []time.Duration // how long each of the Waits took; -1: it was not served
}

// A Crash is when which instance died.
type Crash struct {
	At       time.Duration
	Instance int
}

// report sums up.
func (p *play) report() *Report {
	r := &Report{
		Admitted: p.ledger.Admitted, Reference: p.reference.Admitted,
		Worst: p.ledger.Worst(), WorstWindow: p.ledger.WorstWindow, Bins: p.ledger.Bins,
		WorstWindowExcess: float64(p.ledger.WorstWindow) - p.perSecond(),
		Burst:             int64(p.Limit.Burst()),
		Calls:             p.w.calls, Scripts: p.w.Redis.Calls(),
		PerInstance: p.admitted, Crashes: p.crashes, Waited: p.waited,
		BySource: map[string]int64{}, Opened: p.opened,
	}
	for _, n := range p.offered {
		r.Offered += n
	}
	for k, n := range p.decisions {
		if k.allowed {
			r.BySource[k.source] = n
		} else {
			r.BySource["refused "+k.source] = n
		}
	}
	for _, i := range p.fleet {
		r.Opened += i.gate.opened
	}
	r.Bound = p.bound(r.BySource["degraded"] > 0)
	r.Use = float64(r.Admitted-p.before.admitted) / math.Max(1, float64(r.Reference-p.before.reference))
	r.WrongRefusals = math.Max(0, float64(r.Reference-r.Admitted)) / math.Max(1, float64(r.Offered))
	r.CallsPerSecond = float64(int64(r.Calls)-p.before.calls) / (p.Duration - p.Begin).Seconds()
	r.CallsPerDecision = float64(r.Calls) / math.Max(1, float64(r.Offered))
	r.Fairness = fairness(p.admitted, p.offered)
	for need := int((p.Duration + BinWidth - 1) / BinWidth); len(r.Bins) < need; {
		r.Bins = append(r.Bins, 0) // nothing was admitted at the end
	}
	return r
}

// bound is by how much a second may exceed the rate: by the burst. Instances that
// decide by themselves admit no more, all together, than they would by buckets of
// a part of the limit each, whose burst is at least 1.
func (p *play) bound(alone bool) float64 {
	b := float64(p.Limit.Burst())
	if alone {
		b += math.Max(b, float64(p.Instances)) + p.perSecond()
	}
	return b
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
