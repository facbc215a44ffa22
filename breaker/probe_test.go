package breaker_test

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/resilient-go/limiter/breaker"
)

func goexit() error {
	runtime.Goexit()
	return nil
}

// within checks pauses: 250 ms, 500 ms, then 800 ms, each ±20 %.
func within(t *testing.T, pauses []time.Duration) {
	t.Helper()
	for i, got := range pauses {
		want := 800 * time.Millisecond
		if i < 2 {
			want = 250 * time.Millisecond << i
		}
		if got < want*8/10 || got > want*12/10 {
			t.Fatalf("probe %d came after %v, want %v ±20 %%", i+1, got, want)
		}
	}
}

func TestProbesComeByTheClockAndEverMoreRarely(t *testing.T) {
	for _, traffic := range []bool{false, true} {
		least, most := 2.0, 0.0
		for range many(50, 2000) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.open()
				opened := time.Now()
				for range 1000 { // 10 s
					if traffic {
						_ = r.Do(func() error { return nil })
					}
					time.Sleep(10 * time.Millisecond)
				}
				pauses := r.pauses(opened)
				if len(pauses) < 10 {
					t.Fatalf("%d probes in 10 s", len(pauses))
				}
				within(t, pauses)
				for _, p := range pauses[2:] {
					share := float64(p) / float64(800*time.Millisecond)
					least, most = min(least, share), max(most, share)
				}
			})
		}
		if least > 0.85 || most < 1.15 {
			t.Errorf("with traffic %v: the pauses are spread over %.2f to %.2f of 800 ms: instances would probe together", traffic, least, most)
		}
	}
}

func TestProbesComeOneAtATime(t *testing.T) {
	var running, most atomic.Int32
	inBubble(t, func(t *testing.T, r *rig) {
		r.probes(func() error {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			time.Sleep(3 * time.Second) // far longer than a pause
			return errFailed
		})
		r.open()
		for range 300 {
			time.Sleep(100 * time.Millisecond)
			r.wants(r.State())
		}
		if n := r.count(); n < 7 || n > 10 {
			t.Errorf("%d probes in 30 s", n)
		}
	})
	if most.Load() != 1 {
		t.Errorf("%d probes ran at once", most.Load())
	}
}

func TestCallsAreRefusedWhileAProbeIsUnderWay(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.probes(func() error { time.Sleep(50 * time.Millisecond); return nil })
		r.open()
		for r.State() == breaker.Open {
			time.Sleep(time.Millisecond)
		}
		r.wants(breaker.HalfOpen)
		time.Sleep(48 * time.Millisecond)
		r.wants(breaker.HalfOpen)
		time.Sleep(2 * time.Millisecond)
		r.wants(breaker.Closed)
	})
}

func TestProbeThatFailsOpensAgain(t *testing.T) {
	errOther := errors.New("other")
	for name, probe := range map[string]func() error{
		"failed": func() error { return errOther },
		"hung":   func() error { return errHung },
		"fatal":  func() error { return errFatal },
		"slow":   func() error { <-time.After(101 * time.Millisecond); return nil },
		"panics": func() error { panic("boom") },
		"exits":  goexit,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.probes(probe)
				r.open()
				opened := time.Now()
				time.Sleep(5 * time.Second)
				for r.State() == breaker.HalfOpen { // a slow one
					time.Sleep(time.Millisecond)
				}
				r.wants(breaker.Open)
				seen := r.seen()
				if n := r.count(); n < 5 || len(seen) != 1+2*n {
					t.Fatalf("%d probes, the changes are %v", n, seen)
				}
				r.mu.Lock()
				for i, c := range r.changes[1:] {
					switch {
					case i%2 == 0 && (seen[i+1] != "open>half-open" || c.Err != nil):
						t.Errorf("change %d is %v, %v", i+1, seen[i+1], c.Err)
					case i%2 == 1 && (seen[i+1] != "half-open>open" || c.Err == nil || c.Err == errFatal && name != "fatal"):
						t.Errorf("change %d is %v, %v", i+1, seen[i+1], c.Err)
					case i%2 == 1 && name == "panics" && !strings.Contains(c.Err.Error(), "boom"):
						t.Errorf("a panic is told as %v", c.Err)
					case i%2 == 1 && name == "failed" && !errors.Is(c.Err, errOther):
						t.Errorf("a failure is told as %v", c.Err)
					}
				}
				r.mu.Unlock()
				if name != "slow" {
					within(t, r.pauses(opened))
				}
				r.recover()
			}, func(c *breaker.Config) { c.SlowAfter = 100 * time.Millisecond })
		})
	}
}

func TestProbeThatSaysNothingIsMadeAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.probes(func() error { return errIgnored })
		r.open()
		opened := time.Now()
		time.Sleep(10 * time.Second)
		r.wants(breaker.HalfOpen)
		pauses := r.pauses(opened)
		if len(pauses) < 33 {
			t.Fatalf("%d probes in 10 s", len(pauses))
		}
		for i, p := range pauses {
			if p < 200*time.Millisecond || p > 300*time.Millisecond {
				t.Errorf("probe %d came after %v, want 250 ms ±20 %%", i+1, p)
			}
		}
		if got := r.seen(); !slices.Equal(got, []string{"closed>open", "open>half-open"}) {
			t.Errorf("the changes are %v", got)
		}
		r.recover()
	})
}

func TestProbeThatSucceedsClosesAndStartsAnew(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		for range 3 {
			r.calls(3, errFailed)
			r.calls(1, nil)
		}
		r.open() // nine of twelve and a fatal one
		r.recover()
		r.calls(4, errFailed)
		r.wants(breaker.Closed)
		r.calls(1, nil)
		r.call(errHung, 0)
		r.call(nil, 0)
		r.calls(3, errFailed) // eight of nine
		r.wants(breaker.Closed)
		r.calls(1, nil)
		r.calls(1, errFailed)
		r.wants(breaker.Closed)
		r.calls(1, errFailed)
		r.wants(breaker.Open)
	})
}

func TestFlappingStartsTheProbesAnewEachTime(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		const flaps = 100
		for range flaps {
			r.probes(func() error { return errFailed })
			r.open()
			opened := time.Now()
			first := r.count()
			time.Sleep(3 * time.Second)
			r.mu.Lock()
			if p := r.probed[first].Sub(opened); p < 200*time.Millisecond || p > 300*time.Millisecond {
				t.Errorf("after an opening the first probe came after %v", p)
			}
			r.mu.Unlock()
			r.recover()
		}
		seen := r.seen()
		opened := 0
		for i, c := range seen {
			if i > 0 && strings.Split(seen[i-1], ">")[1] != strings.Split(c, ">")[0] {
				t.Fatalf("after %s comes %s", seen[i-1], c)
			}
			if c == "closed>open" {
				opened++
			}
		}
		if opened != flaps {
			t.Errorf("it opened %d times, want %d", opened, flaps)
		}
	})
}
