package breaker_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/resilient-go/limiter/breaker"
)

func TestOpensAtFiveFailuresInARow(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		for range 100 {
			r.calls(4, errFailed)
			r.calls(16, nil)
		}
		r.calls(4, errFailed)
		r.wants(breaker.Closed)
		r.calls(1, errFailed)
		r.wants(breaker.Open)
		if !time.Now().Equal(r.start) {
			t.Errorf("it took %v", time.Since(r.start))
		}
	})
}

func TestOpensAtTenFailuresOfTheLastTwenty(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		for range 50 { // nine of any twenty in a row
			r.calls(3, errFailed)
			r.calls(4, nil)
			r.calls(3, errFailed)
			r.calls(4, nil)
			r.calls(3, errFailed)
			r.calls(3, nil)
		}
		r.calls(20, nil)
		for range 9 {
			r.calls(1, nil)
			r.calls(1, errFailed)
		}
		r.calls(1, nil)
		r.wants(breaker.Closed)
		r.calls(1, errFailed)
		r.wants(breaker.Open)
	})
}

func TestFailuresOlderThanTwentyOutcomesAreForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		for range 3 {
			r.calls(3, errFailed)
			r.calls(1, nil)
		}
		r.calls(8, nil)       // nine of the last twenty
		r.calls(3, errFailed) // and still, as the first three are out
		r.wants(breaker.Closed)
		r.calls(1, errFailed) // now a success is out
		r.wants(breaker.Open)
	})
}

func TestSlowAnswersAreFailures(t *testing.T) {
	const slow = 40 * time.Millisecond
	inBubble(t, func(t *testing.T, r *rig) {
		for range 20 {
			r.call(nil, slow)
		}
		r.wants(breaker.Closed)
		for range 4 {
			r.call(nil, slow+1)
		}
		r.wants(breaker.Closed)
		r.call(nil, slow+time.Millisecond)
		r.wants(breaker.Open)
		if err := r.changes[0].Err; err == nil || !strings.Contains(err.Error(), "took 41ms") {
			t.Errorf("it opened because of %v", err)
		}
	}, func(c *breaker.Config) { c.SlowAfter = slow })

	inBubble(t, func(t *testing.T, r *rig) {
		for range 20 {
			r.call(nil, time.Hour)
		}
		r.wants(breaker.Closed)
	})
}

func TestSlowCallersWhoGaveUpAreNoFailures(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		for range 20 {
			r.call(errIgnored, time.Hour)
		}
		r.wants(breaker.Closed)
	}, func(c *breaker.Config) { c.SlowAfter = time.Millisecond })
}

func TestTwoHungCallsOpenWhenNothingWasHeardForTheWholePatience(t *testing.T) {
	const timeout, patience = 50 * time.Millisecond, 90 * time.Millisecond
	for _, c := range []struct {
		name string
		run  func(r *rig)
		want breaker.State
	}{
		{"one", func(r *rig) { r.call(errHung, time.Hour) }, breaker.Closed},
		{"one after the other", func(r *rig) {
			r.call(errHung, timeout)
			r.call(errHung, timeout)
		}, breaker.Open},
		{"two at once", func(r *rig) {
			r.during(errHung, timeout)
			r.call(errHung, timeout)
		}, breaker.Closed},
		{"two at once and another", func(r *rig) {
			r.during(errHung, timeout)
			r.call(errHung, timeout)
			r.call(errHung, timeout)
		}, breaker.Open},
		{"exactly as long as the patience", func(r *rig) {
			r.during(errHung, patience)
			r.call(errHung, patience)
		}, breaker.Open},
		{"a nanosecond less", func(r *rig) {
			r.during(errHung, patience-1)
			r.call(errHung, patience-1)
		}, breaker.Closed},
		{"an answer between them", func(r *rig) {
			r.call(errHung, timeout)
			r.call(nil, 0)
			r.call(errHung, timeout)
		}, breaker.Closed},
		{"a failure between them is an answer", func(r *rig) {
			r.call(errHung, timeout)
			r.call(errFailed, 0)
			r.call(errHung, timeout)
		}, breaker.Closed},
		{"a caller who gave up between them is none", func(r *rig) {
			r.call(errHung, timeout)
			r.call(errIgnored, 0)
			r.call(errHung, timeout)
		}, breaker.Open},
		{"an answer to somebody else while both hung", func(r *rig) {
			r.during(errHung, 2*timeout)
			r.during(nil, 2*timeout-1)
			r.call(errHung, 2*timeout)
		}, breaker.Closed},
		{"many at once are one thing that happened", func(r *rig) {
			for range 30 {
				r.during(errHung, timeout)
			}
			r.call(errHung, timeout)
		}, breaker.Closed},
		{"and one more after them", func(r *rig) {
			for range 30 {
				r.during(errHung, timeout)
			}
			r.call(errHung, timeout)
			r.call(errHung, timeout)
		}, breaker.Open},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				c.run(r)
				r.wants(c.want)
			}, func(c *breaker.Config) { c.Patience = patience })
		})
	}
}

func TestTwoHungCallsOpenAtOnceWithoutPatience(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.call(errHung, 0)
		r.wants(breaker.Closed)
		r.call(errHung, 0)
		r.wants(breaker.Open)
	})
}

func TestFatalOutcomeOpensAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.calls(100, nil)
		r.call(errFatal, 0)
		r.wants(breaker.Open)
		if got := r.changes[0].Err; !errors.Is(got, errFatal) {
			t.Errorf("it opened because of %v, want %v", got, errFatal)
		}
	})
}

func TestIgnoredOutcomesNeverCount(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.calls(1000, errIgnored)
		r.wants(breaker.Closed)
		r.calls(4, errFailed)
		r.calls(1000, errIgnored) // nor do they end a run
		r.wants(breaker.Closed)
		r.calls(1, errFailed)
		r.wants(breaker.Open)
	})
}

// A breaker whose counts age out faster than calls hang sees no failure at all.
func TestCallsThatHangForAnHourStillCount(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		for range 4 {
			r.call(errFailed, time.Hour)
		}
		r.wants(breaker.Closed)
		r.call(errFailed, 24*time.Hour)
		r.wants(breaker.Open)
	})
	inBubble(t, func(t *testing.T, r *rig) {
		for range 4 {
			r.during(errFailed, time.Hour)
		}
		r.call(errFailed, time.Hour)
		r.wants(breaker.Open)
	})
}

func TestPanicOfACallIsTheCallersAndAFailure(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		for range 5 {
			r.wants(breaker.Closed)
			func() {
				defer func() {
					if p := recover(); p != "boom" {
						t.Errorf("the caller recovered %v", p)
					}
				}()
				_ = r.Do(func() error { panic("boom") })
			}()
		}
		r.wants(breaker.Open)
		if err := r.changes[0].Err; err == nil || !strings.Contains(err.Error(), "boom") {
			t.Errorf("it opened because of %v", err)
		}
	})
}

func TestCallThatEndsItsGoroutineIsAFailure(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		for range 5 {
			r.wants(breaker.Closed)
			go func() { _ = r.Do(goexit) }()
			synctest.Wait()
		}
		r.wants(breaker.Open)
		if r.changes[0].Err == nil {
			t.Error("it opened for no reason")
		}
	})
}
