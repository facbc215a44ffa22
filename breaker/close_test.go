package breaker_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/resilient-go/limiter/breaker"
)

func TestCloseEndsTheProbes(t *testing.T) {
	for _, wait := range []time.Duration{0, 100 * time.Millisecond, time.Second, time.Minute} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.open()
			time.Sleep(wait)
			r.Close()
			n, at := r.count(), r.State()
			time.Sleep(time.Hour)
			if got := r.count(); got != n {
				t.Errorf("closed after %v: %d probes came after it", wait, got-n)
			}
			if got := r.State(); got != at {
				t.Errorf("closed after %v: then it went from %v to %v", wait, at, got)
			}
		})
	}
}

func TestCloseWaitsForTheProbeUnderWay(t *testing.T) {
	for name, result := range map[string]error{"success": nil, "failure": errFailed, "nothing": errIgnored} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				ended := false
				r.probes(func() error {
					time.Sleep(10 * time.Second)
					ended = true
					return result
				})
				r.open()
				time.Sleep(time.Second)
				r.wants(breaker.HalfOpen)
				var group sync.WaitGroup
				for range 8 {
					group.Go(func() {
						r.Close()
						if !ended {
							t.Error("Close did not wait")
						}
					})
				}
				group.Wait()
				if took := time.Since(r.probed[0]); took != 10*time.Second {
					t.Errorf("Close returned %v after the probe began, want 10 s", took)
				}
				time.Sleep(time.Hour)
				if n := r.count(); n != 1 {
					t.Errorf("%d probes, want the one from before", n)
				}
			})
		})
	}
}

func TestCloseIsIdempotentAndLeavesCallsAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		for range 3 {
			r.Close()
		}
		r.calls(10, nil)
		r.wants(breaker.Closed)
		r.calls(5, errFailed)
		r.wants(breaker.Open)
		r.Close()
		time.Sleep(time.Hour)
		r.wants(breaker.Open)
		if n := r.count(); n != 0 {
			t.Errorf("%d probes of a closed breaker", n)
		}
	})
}

// Close in the very moment in which the timer rings: whoever comes first, no
// goroutine is left and no probe begins after it.
func TestCloseAtTheMomentOfAProbe(t *testing.T) {
	for range many(200, 10_000) {
		synctest.Test(t, func(t *testing.T) {
			var closed, late bool
			var mu sync.Mutex
			b := breaker.New(breaker.Config{Judge: judge, Probe: func() error {
				mu.Lock()
				defer mu.Unlock()
				late = late || closed
				return errFailed
			}})
			_ = b.Do(func() error { return errFatal })
			var group sync.WaitGroup
			for i := range 20 {
				group.Go(func() {
					time.Sleep(200*time.Millisecond + time.Duration(i)*5*time.Millisecond)
					b.Close()
					mu.Lock()
					closed = true
					mu.Unlock()
				})
			}
			group.Wait()
			time.Sleep(time.Hour)
			if late {
				t.Error("a probe began after Close had returned")
			}
		})
	}
}

func TestStatesHaveNames(t *testing.T) {
	for s, want := range map[breaker.State]string{
		breaker.Closed: "closed", breaker.Open: "open", breaker.HalfOpen: "half-open",
	} {
		if got := s.String(); got != want {
			t.Errorf("state %d is %q, want %q", s, got, want)
		}
	}
}
