package breaker_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/resilient-go/limiter/breaker"
)

// Who knows that there is nothing to wait for has the probe come at once: 50 ms later at
// most, and without that the probes come as they would.
func TestEarlyBringsTheProbeForward(t *testing.T) {
	for _, after := range []time.Duration{0, 120 * time.Millisecond, 5 * time.Second} {
		var early atomic.Bool
		var asked atomic.Int32
		inBubble(t, func(t *testing.T, r *rig) {
			if r.call(nil, 10*time.Second); asked.Load() != 0 {
				t.Error("it is asked while the breaker is closed")
			}
			r.open()
			opened := time.Now()
			time.Sleep(after)
			within(t, r.pauses(opened))
			before := r.count()
			early.Store(true)
			r.probes(func() error { return nil })
			begun := time.Now()
			for r.State() != breaker.Closed {
				if time.Since(begun) > 50*time.Millisecond {
					t.Fatalf("not closed after %v", time.Since(begun))
				}
				time.Sleep(time.Millisecond)
			}
			if n := r.count() - before; n != 1 {
				t.Errorf("%d probes, want one", n)
			}
			if seen := r.seen(); !slices.Equal(seen[len(seen)-2:], []string{"open>half-open", "half-open>closed"}) {
				t.Errorf("changes %q", seen)
			}
			if n, most := asked.Load(), int32((after+time.Second)/(50*time.Millisecond)); n == 0 || n > most {
				t.Errorf("asked %d times in %v, want each 50ms", n, after)
			}
			n := asked.Load()
			if time.Sleep(10 * time.Second); asked.Load() != n {
				t.Error("it is asked while the breaker is closed")
			}
		}, func(c *breaker.Config) {
			c.Early = func() bool { asked.Add(1); return early.Load() }
		})
	}
}

// A probe that was brought forward and fails: the next one comes early as well, since
// that is what was asked for, but no more often than Early is asked.
func TestEarlyProbesThatFail(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.open()
		time.Sleep(time.Second)
		if n := r.count(); n < 15 || n > 20 {
			t.Errorf("%d probes in a second, want one each 50ms", n)
		}
	}, func(c *breaker.Config) { c.Early = func() bool { return true } })
}
