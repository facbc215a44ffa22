package main

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// The windows are compared with a count of all calls, look by look.
func TestWindowsAgreeWithACountOfAllCalls(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var w Windows
	w.Reset(0)
	var all []call
	want := make([]int, len(lengths))
	for now := lookLength; now < 25*time.Second; now += lookLength {
		var fresh []call
		for range rnd.IntN(30) {
			// Some are noted a look later than they ended.
			end := max(0, now-time.Duration(rnd.Int64N(int64(2*lookLength))))
			fresh = append(fresh, call{max(0, end-time.Duration(rnd.Int64N(int64(80*time.Millisecond)))), end})
		}
		all = append(all, fresh...)
		w.Add(fresh)
		w.Look(now)
		for i, length := range lengths {
			n := 0
			for _, c := range all {
				if c.start >= now-length && c.end > now-length && c.end <= now {
					n++
				}
			}
			want[i] = max(want[i], n)
		}
	}
	if got := w.Worst(); !slices.Equal(got, want) {
		t.Errorf("worst windows %v, want %v", got, want)
	}
	if len(w.calls) > len(all)/2 {
		t.Errorf("%d of %d calls are kept", len(w.calls), len(all))
	}
}

// A call that may have taken its permit before the window does not count.
func TestWindowsCountWhatIsCertain(t *testing.T) {
	var w Windows
	w.Reset(0)
	ms := time.Millisecond
	w.Add([]call{{10 * ms, 110 * ms}, {30 * ms, 110 * ms}, {120 * ms, 120 * ms}})
	w.Look(120 * ms)
	if got := w.Worst()[0]; got != 2 {
		t.Errorf("%d in a tenth of a second, want the two that began in it", got)
	}
}

func TestWindowsBeginAnew(t *testing.T) {
	var w Windows
	w.Reset(0)
	second := time.Second
	w.Add([]call{{second, second}, {second, second}})
	w.Look(second)
	w.Reset(2 * second)
	w.Add([]call{{second, 2 * second}, {3 * second, 3 * second}})
	w.Look(3 * second)
	if got := w.Worst(); !slices.Equal(got, []int{1, 1, 1}) {
		t.Errorf("worst windows %v, want the one call that began after the reset", got)
	}
}
