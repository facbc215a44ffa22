package hybrid

import (
	"sync/atomic"
	"time"
)

// A Histogram counts observations in ranges.
type Histogram struct {
	// Bounds are the upper bounds of the ranges but the last, which has none.
	Bounds []float64
	// Counts has one more element than Bounds.
	Counts []uint64
	// Sum of the observations.
	Sum float64
}

// callBounds are the bounds of durations of calls, in seconds: from a server next
// door to one that is far too slow.
var callBounds = [...]float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1}

// durations is the histogram behind one operation's calls.
type durations struct {
	counts [len(callBounds) + 1]atomic.Uint64
	nanos  atomic.Int64
}

func (d *durations) observe(took time.Duration) {
	i := 0
	for i < len(callBounds) && took.Seconds() > callBounds[i] {
		i++
	}
	d.counts[i].Add(1)
	d.nanos.Add(int64(took))
}

func (d *durations) histogram() Histogram {
	h := Histogram{Bounds: callBounds[:], Counts: make([]uint64, len(d.counts)), Sum: time.Duration(d.nanos.Load()).Seconds()}
	for i := range d.counts {
		h.Counts[i] = d.counts[i].Load()
	}
	return h
}

// leftSteps divides what is left of a bucket.
const leftSteps = 10

// lefts is the histogram of what was left of the buckets when requests were
// decided: in tenths, the first for nothing at all.
type lefts [leftSteps + 1]atomic.Uint64

// observe counts n decisions that found that many of burst tokens left.
func (l *lefts) observe(n uint64, left, burst int64) {
	if n > 0 && burst > 0 {
		l[leftTenths(left, burst)].Add(n)
	}
}

// leftTenths is what is left of a burst in tenths, rounded up.
func leftTenths(left, burst int64) int64 {
	return (max(0, min(left, burst))*leftSteps + burst - 1) / burst
}

func (l *lefts) histogram() Histogram {
	h := Histogram{Bounds: make([]float64, leftSteps), Counts: make([]uint64, leftSteps+1)}
	for i := range l {
		n := l[i].Load()
		h.Counts[i] = n
		h.Sum += float64(n) * float64(i) / leftSteps
	}
	for i := range h.Bounds {
		h.Bounds[i] = float64(i) / leftSteps
	}
	return h
}
