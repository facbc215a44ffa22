package hybrid_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

func TestShareOfTheLimitInAnOutage(t *testing.T) {
	tests := []struct {
		limit     hybrid.Limit
		instances int
		headroom  float64
		burst     int
		every     time.Duration
	}{
		{hybrid.PerSecond(100), 1, 1, 100, 10 * time.Millisecond},
		{hybrid.PerSecond(100), 4, 1, 25, 40 * time.Millisecond},
		{hybrid.PerSecond(100), 4, 0.8, 20, 50 * time.Millisecond},
		{hybrid.PerSecond(100), 3, 1, 33, 30 * time.Millisecond},
		{hybrid.PerSecond(100), 1, 2, 200, 5 * time.Millisecond},
		{hybrid.PerSecond(98), 49, 1, 2, 500 * time.Millisecond},
		{hybrid.PerSecond(100), 1, 0.29, 29, time.Second / 29},
		{hybrid.PerSecond(10), 10, 1, 1, time.Second},
		{hybrid.PerSecond(10), 20, 1, 1, 2 * time.Second}, // at least one
		{hybrid.PerMinute(5), 100, 1, 1, 20 * time.Minute},
		{hybrid.PerSecond(100).WithBurst(10), 2, 1, 5, 20 * time.Millisecond},
	}
	for _, tt := range tests {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			r.Kill()
			lim := start(t, r, tt.limit, hybrid.WithExpectedInstances(tt.instances), hybrid.WithHeadroom(tt.headroom))
			trip(t, lim)
			name := fmt.Sprintf("%v over %d × %v", tt.limit, tt.instances, tt.headroom)
			want(t, name+": of a key never seen", drain(t, lim, "k"), tt.burst)
			for range 5 {
				res := allow(t, lim)
				if late := res.RetryAfter - tt.every; res.Allowed || late < 0 || late > 2 {
					t.Errorf("%s: %+v, want a retry after %v", name, res, tt.every)
				}
				time.Sleep(res.RetryAfter)
				want(t, name+": after RetryAfter", allow(t, lim).Allowed, true)
			}
			time.Sleep(tt.every * time.Duration(3*tt.burst))
			want(t, name+": after a rest", drain(t, lim, "k"), tt.burst)
		})
	}
}

// TestOutageStartsAtThePartOfTheLevel: an outage is no fresh burst.
func TestOutageStartsAtThePartOfTheLevel(t *testing.T) {
	for _, left := range []int{0, 3, 10, 40, 99} {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			limit := hybrid.PerHour(1).WithBurst(100)
			lim := start(t, r, limit, hybrid.WithExpectedInstances(4))
			allowN(t, lim, "k", 100-left)
			r.Kill()
			trip(t, lim)
			want(t, fmt.Sprint("with ", left, " at the root"), drain(t, lim, "k"), left/4)
		})
	}
}

// TestSecondOutageStartsWhereItMust: the share is not made anew, and what Redis
// admitted meanwhile lowers it.
func TestSecondOutageStartsWhereItMust(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		limit := hybrid.PerHour(1).WithBurst(100)
		lim := start(t, r, limit, hybrid.WithExpectedInstances(4))
		other := start(t, r, limit)
		allow(t, lim)
		fail := func() {
			r.FailWith("LOADING Redis is loading the dataset in memory")
			trip(t, lim)
		}
		heal := func() {
			r.Heal()
			time.Sleep(time.Second)
			want(t, "back", lim.Stats().Breaker, "closed")
		}
		fail()
		for range 20 { // of 24
			want(t, "in the first outage", allow(t, lim).Allowed, true)
		}
		heal()
		fail()
		want(t, "in the second outage", drain(t, lim, "k"), 4)
		heal()
		want(t, "80 of 99", allowN(t, other, "k", 80).Allowed, true)
		allow(t, lim)
		settle()                   // what the outages admitted is charged, as far as there is anything left
		time.Sleep(40 * time.Hour) // the share has gained 10, the root 40
		want(t, "38 of 40", allowN(t, other, "k", 38).Allowed, true)
		allow(t, lim) // the root holds 1, as lim learns
		fail()
		want(t, "in the third outage", drain(t, lim, "k"), 0)
	})
}

func TestPolicies(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		r.Kill()
		open := start(t, r, hybrid.PerHour(1), hybrid.WithOutagePolicy(hybrid.FailOpen))
		closed := start(t, r, hybrid.PerHour(1), hybrid.WithOutagePolicy(hybrid.FailClosed))
		for range 100 {
			if res := allow(t, open); !res.Allowed || res.Source != hybrid.SourceDegraded || res.RetryAfter != 0 {
				t.Fatalf("fail open: %+v", res)
			}
			if res := allow(t, closed); res.Allowed || res.Source != hybrid.SourceDegraded || res.RetryAfter != time.Second || res.Remaining != 0 {
				t.Fatalf("fail closed: %+v", res)
			}
		}
		r.RestartEmpty()
		time.Sleep(time.Second)
		for _, lim := range []*hybrid.Limiter{open, closed} {
			want(t, "first with Redis", allowN(t, lim, fmt.Sprint(lim == open), 1).Allowed, true)
			want(t, "second with Redis", allowN(t, lim, fmt.Sprint(lim == open), 1).Source, hybrid.SourceRedis)
		}
	})
}

func TestHeldLeaseGoesOnInAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(10_000), hybrid.WithOutagePolicy(hybrid.FailClosed))
		every(t, lim, 1000, time.Millisecond, func(hybrid.Result) {})
		s := lim.Stats()
		held := int(s.TokensGranted - s.Allowed[hybrid.SourceLease])
		want(t, "something is held", held > 20, true)
		r.Kill()
		trip(t, lim)
		for i := range held {
			if res := allow(t, lim); !res.Allowed || res.Source != hybrid.SourceLease {
				t.Fatalf("%d of %d held: %+v", i, held, res)
			}
		}
		want(t, "then", allow(t, lim).Source, hybrid.SourceDegraded)
	})
}

// TestNeedsAboveTheShareWaitForRedis: they are no error, since Redis can serve
// them, but the share never will.
func TestNeedsAboveTheShareWaitForRedis(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		r.Kill()
		lim := start(t, r, hybrid.PerSecond(100), hybrid.WithExpectedInstances(10))
		trip(t, lim)
		res := allowN(t, lim, "k", 50)
		if res.Allowed || res.RetryAfter <= 0 || res.Source != hybrid.SourceDegraded {
			t.Errorf("%+v", res)
		}
		r.RestartEmpty()
		time.Sleep(time.Second)
		res = allowN(t, lim, "k", 50) // others may still be degraded
		if res.Allowed || res.RetryAfter > 1960*time.Millisecond || res.Source != hybrid.SourcePrefilter {
			t.Errorf("just after the outage: %+v", res)
		}
		time.Sleep(res.RetryAfter)
		want(t, "with Redis", allowN(t, lim, "k", 50).Allowed, true)
	})
}

func TestFaultOfOneKeyIsNoOutage(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		events := new(journal)
		lim := start(t, r, hybrid.PerSecond(10), hybrid.WithExpectedInstances(2), hybrid.WithEvents(events.add))
		warm(t, lim)
		for range 30 {
			r.FailNext(1, "WRONGTYPE Operation against a key holding the wrong kind of value")
			want(t, "source of the bad key", allowN(t, lim, "bad", 1).Source, hybrid.SourceDegraded)
			want(t, "source of a good key", allowN(t, lim, "good", 1).Source != hybrid.SourceDegraded, true)
			settle() // the good key may be renewing its lease
			calls := r.Counts().EvalSHA
			want(t, "the bad key is left alone", allowN(t, lim, "bad", 1).Source, hybrid.SourceDegraded)
			want(t, "calls", r.Counts().EvalSHA, calls)
			time.Sleep(250 * time.Millisecond) // for longer than a horizon
		}
		want(t, "breaker", lim.Stats().Breaker, "closed")
		told := events.all()
		if len(told) != 1 {
			t.Fatalf("events: %v, want one", told)
		}
		m, ok := told[0].(hybrid.Misconfigured)
		want(t, "told as misconfigured", ok, true)
		want(t, "class", m.Class, "badkey")
	})
}

// TestCrowdInAnOutage: many at once on one key get what one after the other would, and
// none of them reads what another one is writing (the race detector looks).
func TestCrowdInAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		r.Kill()
		lim := start(t, r, hybrid.PerHour(1).WithBurst(500), hybrid.WithExpectedInstances(1))
		trip(t, lim)
		var admitted atomic.Int64
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 100 {
					if res, err := lim.Allow(t.Context(), "crowd"); err == nil && res.Allowed {
						admitted.Add(1)
					}
				}
			})
		}
		all.Wait()
		want(t, "admitted", admitted.Load(), 500)
	})
}
