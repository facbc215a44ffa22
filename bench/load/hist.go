// Package load calls limiters and measures what their callers see.
package load

import (
	"math"
	"math/bits"
	"time"
)

// Each power of two is cut into so many ranges, so that a quantile is at most 1.6 %
// above the true one.
const (
	fineBits = 6
	fine     = 1 << fineBits
)

// A Hist counts durations. The zero Hist is empty. It is for one goroutine.
type Hist struct {
	counts []uint64
	n      uint64
	max    time.Duration
}

// Add counts a duration; a negative one is none.
func (h *Hist) Add(d time.Duration) {
	d = max(d, 0)
	i := slot(uint64(d))
	if i >= len(h.counts) {
		h.counts = append(h.counts, make([]uint64, i+1-len(h.counts))...)
	}
	h.counts[i]++
	h.n++
	h.max = max(h.max, d)
}

// Merge adds all that o has.
func (h *Hist) Merge(o *Hist) {
	if len(o.counts) > len(h.counts) {
		h.counts = append(h.counts, make([]uint64, len(o.counts)-len(h.counts))...)
	}
	for i, c := range o.counts {
		h.counts[i] += c
	}
	h.n += o.n
	h.max = max(h.max, o.max)
}

// Count is how many were added.
func (h *Hist) Count() uint64 { return h.n }

// Max is the longest.
func (h *Hist) Max() time.Duration { return h.max }

// Quantile is the upper end of the range in which the q-th part of the durations
// ends, 0 < q ≤ 1; 0 of nothing.
func (h *Hist) Quantile(q float64) time.Duration {
	if h.n == 0 {
		return 0
	}
	rank, seen := uint64(math.Ceil(q*float64(h.n))), uint64(0)
	for i, c := range h.counts {
		if seen += c; seen >= rank {
			return min(upper(i), h.max)
		}
	}
	return h.max
}

// slot is the range of a value: values below 2·fine have one each.
func slot(v uint64) int {
	shift := max(0, bits.Len64(v)-fineBits-1)
	return shift<<fineBits + int(v>>shift)
}

// upper is the largest value of a range.
func upper(i int) time.Duration {
	if i < 2*fine {
		return time.Duration(i)
	}
	shift := i>>fineBits - 1
	return time.Duration((uint64(i-shift<<fineBits)+1)<<shift - 1)
}
