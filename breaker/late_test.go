package breaker_test

import (
	"testing"
	"time"

	"github.com/resilient-go/limiter/breaker"
)

// opensWhile begins calls, opens the breaker while they are under way and has
// them end after that time.
func (r *rig) opensWhile(n int, err error, after time.Duration) {
	r.t.Helper()
	for range n {
		r.during(err, after)
	}
	r.open()
}

func TestLateOutcomesChangeNothingWhileItIsOpen(t *testing.T) {
	for _, err := range []error{nil, errFailed, errHung, errFatal, errIgnored} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.opensWhile(10, err, 150*time.Millisecond)
			time.Sleep(199 * time.Millisecond) // no probe is due yet
			r.wants(breaker.Open)
			if got := r.seen(); len(got) != 1 {
				t.Errorf("calls that ended late with %v changed it: %v", err, got)
			}
			time.Sleep(102 * time.Millisecond)
			if n := r.count(); n != 1 {
				t.Errorf("%d probes in 301 ms", n)
			}
		})
	}
}

func TestLateOutcomesDoNotDecideForTheProbe(t *testing.T) {
	for _, late := range []error{nil, errFailed, errFatal} {
		inBubble(t, func(t *testing.T, r *rig) {
			for i := range 40 {
				r.during(late, time.Duration(400+20*i)*time.Millisecond)
			}
			r.probes(func() error { time.Sleep(time.Second); return errFailed })
			r.open()
			time.Sleep(500 * time.Millisecond)
			r.wants(breaker.HalfOpen)
			time.Sleep(600 * time.Millisecond)
			r.wants(breaker.HalfOpen)
			time.Sleep(200 * time.Millisecond)
			r.wants(breaker.Open)
			if got := r.seen(); len(got) != 3 {
				t.Errorf("calls that ended late with %v: %v", late, got)
			}
		})
	}
}

func TestLateOutcomesDoNotCountAfterRecovery(t *testing.T) {
	for _, late := range []error{errFailed, errHung, errFatal} {
		inBubble(t, func(t *testing.T, r *rig) {
			r.opensWhile(30, late, 2*time.Second)
			r.recover()
			time.Sleep(2 * time.Second)
			r.wants(breaker.Closed)
			r.calls(1, errHung)
			r.calls(3, errFailed)
			r.wants(breaker.Closed)
			if got := r.seen(); len(got) != 3 {
				t.Errorf("calls that ended late with %v: %v", late, got)
			}
		})
	}
	inBubble(t, func(t *testing.T, r *rig) { // nor does a success end a run
		r.opensWhile(1, nil, 2*time.Second)
		r.recover()
		r.calls(4, errFailed)
		time.Sleep(2 * time.Second)
		r.calls(1, errFailed)
		r.wants(breaker.Open)
	})
}

// Whoever was on the way in when the breaker opened must not become a probe.
func TestCallThatMissedTheOpeningDoesNotRun(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.probes(func() error { time.Sleep(100 * time.Millisecond); return errFailed })
		r.open()
		for range 2000 {
			time.Sleep(time.Millisecond)
			err := r.DoLate(func() error {
				t.Error("it ran")
				return nil
			})
			if err != breaker.ErrOpen {
				t.Fatalf("it got %v", err)
			}
		}
		if n := r.count(); n < 3 {
			t.Errorf("%d probes in 2 s", n)
		}
		r.recover()
	})
}
