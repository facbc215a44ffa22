package hybrid_test

import (
	"errors"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// A refusal that stands is told again without the lock: the same answer, except
// that the time goes by, and each is counted.
func TestStandingRefusalIsToldAgainAsTimeGoesBy(t *testing.T) {
	for source, make := range map[hybrid.Source]func(*testing.T, *redistest.Mini) *hybrid.Limiter{
		hybrid.SourceDenied: func(t *testing.T, r *redistest.Mini) *hybrid.Limiter {
			return start(t, r, hybrid.PerHour(1))
		},
		hybrid.SourcePrefilter: func(t *testing.T, r *redistest.Mini) *hybrid.Limiter {
			return start(t, r, hybrid.PerHour(10), hybrid.WithLocalShare(0.2))
		},
		hybrid.SourceDegraded: func(t *testing.T, r *redistest.Mini) *hybrid.Limiter {
			lim := start(t, r, hybrid.PerHour(1))
			r.Kill()
			trip(t, lim)
			return lim
		},
	} {
		t.Run(source.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *redistest.Mini) {
				lim := make(t, r)
				drain(t, lim, "k")
				first := allow(t, lim)
				want(t, "source", first.Source, source)
				before := lim.Stats().Refused[source]
				for n := range 50 {
					time.Sleep(time.Millisecond)
					res := allow(t, lim)
					expected := first
					expected.RetryAfter -= time.Duration(n+1) * time.Millisecond
					want(t, "refusal", res, expected)
				}
				want(t, "refused", lim.Stats().Refused[source]-before, 50)
			})
		})
	}
}

// What could let a request pass ends the refusal at once.
func TestStandingRefusalEndsWhenSomethingChanges(t *testing.T) {
	for name, change := range map[string]func(*testing.T, *hybrid.Limiter){
		"Reset":    func(t *testing.T, lim *hybrid.Limiter) { want(t, "Reset", lim.Reset(t.Context(), "k"), nil) },
		"SetLimit": func(t *testing.T, lim *hybrid.Limiter) { want(t, "SetLimit", lim.SetLimit(hybrid.Unlimited), nil) },
		"time":     func(*testing.T, *hybrid.Limiter) { time.Sleep(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *redistest.Mini) {
				lim := start(t, r, hybrid.PerHour(1))
				drain(t, lim, "k")
				want(t, "refused", allow(t, lim).Allowed, false)
				change(t, lim)
				want(t, "allowed", allow(t, lim).Allowed, true)
			})
		})
	}
}

func TestStandingRefusalEndsWithTheLimiter(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerHour(1))
		drain(t, lim, "k")
		allow(t, lim)
		if err := lim.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := lim.Allow(t.Context(), "k"); !errors.Is(err, hybrid.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// Those refused without the lock are demand like any other.
func TestStandingRefusalsAreDemand(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(100))
		admitted := uint64(drain(t, lim, "k"))
		before := lim.Stats()
		for begun := time.Now(); time.Since(begun) < time.Second; time.Sleep(100 * time.Microsecond) {
			allow(t, lim)
		}
		after := lim.Stats()
		admitted += decisions(after) - decisions(before)
		for source, n := range after.Refused {
			admitted -= n - before.Refused[source]
		}
		if admitted < 190 || admitted > 200 {
			t.Errorf("%d requests were admitted in a second under 100 per second with a burst of 100", admitted)
		}
		want(t, "decisions", decisions(after)-decisions(before), 10_000)
	})
}
