package local

import "time"

// Unit is how many micro-tokens one token is.
const Unit = 1_000_000

// A Rate is a number of micro-tokens per microsecond as a reduced fraction, so
// that 7 tokens per 3 s is exactly that.
type Rate struct{ Num, Den int64 }

// PerSecond is the rate in tokens per second.
func (r Rate) PerSecond() float64 { return float64(r.Num) / float64(r.Den) }

// TimeFor is how long the rate takes for that many micro-tokens, rounded up to
// nanoseconds. The product micro·Den must stay below 2^53, as it does for any
// amount up to the burst of a valid limit; a negative amount takes no time.
func (r Rate) TimeFor(micro int64) time.Duration {
	if micro <= 0 {
		return 0
	}
	x := micro * r.Den * 1000 // below 2^63, since 2^53·1000 is
	d := x / r.Num
	if x%r.Num != 0 {
		d++
	}
	return time.Duration(d)
}

// In is how many micro-tokens the rate is worth in d, as a floating-point
// number because d has no bound: for estimates only.
func (r Rate) In(d time.Duration) float64 {
	return float64(d) / 1000 * r.PerSecond()
}
