package main

import (
	"cmp"
	"slices"
	"sort"
	"time"
)

// lengths are the windows that are looked at.
var lengths = []time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second}

// longestCall is how long a decision may take at most, on a machine that stands
// still now and then.
const longestCall = time.Second

// Windows find the most that was admitted in any window of each length. A permit
// was taken at some instant between the start and the end of its call. So a window
// counts the calls that lie within it as a whole, and what is found was certainly
// admitted in it. The windows are those that end at a look.
type Windows struct {
	calls []call // of the last ten seconds, in the order of their ends
	worst []int
	from  time.Duration // what began before does not count
}

type call struct{ start, end time.Duration }

// Reset begins anew: windows begin at a time or later.
func (w *Windows) Reset(from time.Duration) {
	w.from = from
	w.worst = make([]int, len(lengths))
}

// Add notes the admitted calls that have ended since the last look.
func (w *Windows) Add(calls []call) {
	if len(calls) == 0 {
		return
	}
	byEnd := func(a, b call) int { return cmp.Compare(a.end, b.end) }
	// A few of the last look may have ended later: callers know their end before
	// they note it.
	late := w.after(slices.MinFunc(calls, byEnd).end)
	w.calls = append(w.calls, calls...)
	slices.SortFunc(w.calls[late:], byEnd)
}

// Look measures the windows that end now.
func (w *Windows) Look(now time.Duration) {
	longest := lengths[len(lengths)-1]
	w.calls = w.calls[w.after(now-longest):]
	for i, length := range lengths {
		begin := max(now-length, w.from)
		first := w.after(begin)
		n := len(w.calls) - first
		for _, c := range w.calls[first:] {
			if c.end > begin+longestCall {
				break
			}
			if c.start < begin {
				n--
			}
		}
		w.worst[i] = max(w.worst[i], n)
	}
}

// after is the place of the first call that ended after a time.
func (w *Windows) after(at time.Duration) int {
	return sort.Search(len(w.calls), func(i int) bool { return w.calls[i].end > at })
}

// Worst is the most in a window of each length.
func (w *Windows) Worst() []int { return slices.Clone(w.worst) }
