package load

import (
	"slices"
	"time"
)

// Excess is by how much the worst of all windows, of whatever length, exceeds what
// the rate alone is worth in it: the largest number of admissions in a window less
// rate·length. A token bucket keeps it within its burst. The times may be in any
// order; the rate is per second.
func Excess(admitted []time.Duration, rate float64) float64 {
	times := slices.Sorted(slices.Values(admitted))
	// The level of a bucket that leaks at the rate: its maximum is the maximum over
	// all windows.
	var level, worst float64
	var last time.Duration
	for i, at := range times {
		if i > 0 {
			level = max(0, level-rate*(at-last).Seconds())
		}
		last = at
		level++
		worst = max(worst, level)
	}
	return worst
}
