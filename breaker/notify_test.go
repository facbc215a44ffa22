package breaker_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/resilient-go/limiter/breaker"
)

func TestNotifyIsToldEachChangeOnceInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		time.Sleep(time.Hour)
		r.open()
		opened := time.Now()
		time.Sleep(400 * time.Millisecond) // the first probe fails, the second comes after 600 ms
		r.recover()
		want := []string{"closed>open", "open>half-open", "half-open>open", "open>half-open", "half-open>closed"}
		if got := r.seen(); !slices.Equal(got, want) {
			t.Fatalf("the changes are %v, want %v", got, want)
		}
		errs := []error{errFatal, nil, errFailed, nil, nil}
		times := []time.Time{opened, r.probed[0], r.probed[0], r.probed[1], r.probed[1]}
		for i, c := range r.changes {
			if !errors.Is(c.Err, errs[i]) || !c.At.Equal(times[i]) {
				t.Errorf("%s at %v because of %v, want %v, %v", want[i], c.At, c.Err, times[i], errs[i])
			}
		}
	})
}

func TestNotifyMayUseTheBreaker(t *testing.T) {
	var b *breaker.Breaker
	var got []breaker.State
	inBubble(t, func(t *testing.T, r *rig) {
		b = r.Breaker
		r.open()
		r.recover()
		r.open() // by the call within Notify it has reopened already
	}, func(c *breaker.Config) {
		c.Notify = func(c breaker.Change) {
			got = append(got, c.To)
			b.State()
			b.Closed()
			if len(got) < 10 {
				_ = b.Do(func() error { return nil })
			}
		}
	})
	want := []breaker.State{breaker.Open, breaker.HalfOpen, breaker.Closed, breaker.Open}
	if !slices.Equal(got, want) {
		t.Errorf("told %v, want %v", got, want)
	}
}

func TestChangeCausedByNotifyComesNext(t *testing.T) {
	var b *breaker.Breaker
	var got []breaker.State
	inside := 0
	inBubble(t, func(t *testing.T, r *rig) {
		b = r.Breaker
		r.open()
		r.probes(func() error { return nil })
		time.Sleep(350 * time.Millisecond)
		r.wants(breaker.Open)
	}, func(c *breaker.Config) {
		c.Notify = func(c breaker.Change) {
			if inside++; inside != 1 {
				t.Error("Notify runs within itself")
			}
			got = append(got, c.To)
			if c.To == breaker.Closed {
				_ = b.Do(func() error { return errFatal })
			}
			inside--
		}
	})
	want := []breaker.State{breaker.Open, breaker.HalfOpen, breaker.Closed, breaker.Open}
	if !slices.Equal(got, want) {
		t.Errorf("told %v, want %v", got, want)
	}
}

func TestSlowNotifyHoldsUpNobodyElse(t *testing.T) {
	var told atomic.Int32
	inBubble(t, func(t *testing.T, r *rig) {
		r.probes(func() error { return nil })
		go func() { _ = r.Do(func() error { return errFatal }) }()
		synctest.Wait() // Notify hangs
		r.wants(breaker.Open)
		time.Sleep(301 * time.Millisecond)
		r.wants(breaker.Closed) // the probe came all the same
		before := time.Now()
		r.calls(100, nil)
		r.calls(5, errFailed)
		r.wants(breaker.Open)
		if !time.Now().Equal(before) {
			t.Errorf("calls were held up for %v", time.Since(before))
		}
		if n := told.Load(); n != 1 {
			t.Errorf("Notify was called %d times while it had not returned", n)
		}
		time.Sleep(10 * time.Minute)
		if n := told.Load(); n < 4 {
			t.Errorf("Notify was told %d changes in the end", n)
		}
	}, func(c *breaker.Config) {
		c.Notify = func(breaker.Change) {
			told.Add(1)
			time.Sleep(time.Minute)
		}
	})
}

func TestNotifyIsOptional(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.open()
		r.recover()
	}, func(c *breaker.Config) { c.Notify = nil })
}

// A storm of calls, probes and changes: what is told is a chain without a gap,
// and ends in the state that the breaker is in.
func TestNotifyKeepsItsOrderInAStorm(t *testing.T) {
	var busy atomic.Int32
	var changes []breaker.Change
	inBubble(t, func(t *testing.T, r *rig) {
		r.probes(func() error {
			if rand.IntN(3) == 0 {
				return errFailed
			}
			return nil
		})
		var group sync.WaitGroup
		for range 16 {
			group.Go(func() {
				for range many(300, 10_000) {
					time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond)
					_ = r.Do(func() error {
						time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
						if rand.IntN(2) == 0 {
							return errFailed
						}
						return nil
					})
				}
			})
		}
		group.Wait()
		r.Close()
		synctest.Wait()
		at, last := breaker.Closed, time.Time{}
		for i, c := range changes {
			if c.From != at || c.From == c.To || c.At.Before(last) {
				t.Fatalf("change %d is %v>%v at %v; before it was %v at %v", i, c.From, c.To, c.At, at, last)
			}
			at, last = c.To, c.At
		}
		if at != r.State() || len(changes) < 10 {
			t.Errorf("after %d changes Notify believes %v, it is %v", len(changes), at, r.State())
		}
	}, func(c *breaker.Config) {
		c.Notify = func(c breaker.Change) {
			if busy.Add(1) != 1 {
				t.Error("two changes are told at once")
			}
			time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
			changes = append(changes, c)
			busy.Add(-1)
		}
	})
}
