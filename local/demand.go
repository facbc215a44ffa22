package local

import (
	"math"
	"time"
)

// HalfLife is how fast past demand is forgotten. Where calls are rare it is longer:
// as long as that many take, up to a longest one.
const (
	HalfLife         = 250 * time.Millisecond
	CallsPerHalfLife = 6
	LongestHalfLife  = 5 * time.Second

	coincidence = 3 // calls that may come together by chance
)

// Demand estimates what is asked of a key: an exponentially weighted average of
// tokens and calls per second. The zero Demand has seen nothing.
type Demand struct {
	tokens, calls float64 // per second
	known         float64 // weight of the time seen so far; the rest is as if nothing had been asked
	seen          int64   // calls in all
	at            int64
	started       bool
}

// Add notes what was asked between the last Add and now.
func (d *Demand) Add(now, tokens, calls int64) {
	if !d.started {
		d.started, d.at = true, now
	}
	dt := float64(max(0, now-d.at)) / 1e9
	d.at = max(d.at, now)
	// An impulse adds n·λ and the average decays at λ, so that a steady rate
	// converges on itself, however the notes are spaced. The half-life spans a few
	// calls at least, since two that come together by chance are no demand.
	pace := d.calls
	if many := float64(calls - coincidence); many > 0 && dt > 0 {
		pace = math.Max(pace, many/dt)
	}
	half := float64(HalfLife) / 1e9
	if d.seen += calls; d.seen > CallsPerHalfLife && pace > 0 {
		half = min(max(half, CallsPerHalfLife/pace), float64(LongestHalfLife)/1e9)
	}
	lambda := math.Ln2 / half
	decay := math.Exp(-lambda * dt)
	weight := lambda
	if dt > 0 {
		weight = -math.Expm1(-lambda*dt) / dt // (1-decay)/dt: the impulses were spread over dt
	}
	d.tokens = d.tokens*decay + float64(tokens)*weight
	d.calls = d.calls*decay + float64(calls)*weight
	d.known = d.known*decay + 1 - decay
}

// PerSecond is the demand in tokens per second.
func (d *Demand) PerSecond() float64 { return d.tokens / d.part() }

// part is the part of the averages that rests on what was seen.
func (d *Demand) part() float64 { return math.Max(d.known, leastKnown) }

// leastKnown: what was seen for less than half of a half-life tells little.
const leastKnown = 0.3

// Size is the average size of a call in tokens, at least 1.
func (d *Demand) Size() float64 {
	if d.calls <= 0 {
		return 1
	}
	return math.Max(1, d.tokens/d.calls)
}

// Horizon stretches a horizon until the demand within it covers that many
// calls, up to a longest one: a key with little demand would otherwise never
// save a call.
func (d *Demand) Horizon(base, longest time.Duration, calls float64) time.Duration {
	if d.calls <= 0 {
		return base
	}
	stretched := time.Duration(math.Min(calls*d.part()/d.calls*1e9, float64(longest)))
	return max(base, stretched)
}
