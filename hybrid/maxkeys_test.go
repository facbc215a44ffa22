package hybrid_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

func TestKeysBeyondTheBoundAreDecidedByRedis(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerHour(3), hybrid.WithMaxKeys(16))
		for round := range 4 {
			for k := range runs(300, 3000) {
				res := allowN(t, lim, fmt.Sprint(k), 1)
				if res.Allowed != (round < 3) || res.Source == hybrid.SourceDegraded {
					t.Fatalf("request %d of key %d: %+v", round, k, res)
				}
			}
		}
		s := lim.Stats()
		if s.Keys > 16 {
			t.Errorf("%d keys remembered of at most 16", s.Keys)
		}
		want(t, "some were forgotten", s.Evicted > 0, true)
	})
}

func TestForgottenKeyGivesItsLeaseBack(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		limit := hybrid.PerHour(1).WithBurst(1000)
		lim, other := start(t, r, limit, hybrid.WithMaxKeys(1)), start(t, r, limit)
		every(t, lim, 100, time.Millisecond, func(hybrid.Result) {})
		want(t, "something is held", peek(t, other).Remaining < 900, true)
		for k := range 3 { // the first one finds it in use
			allowN(t, lim, fmt.Sprint(k), 1)
		}
		settle()
		want(t, "evicted", lim.Stats().Evicted > 0, true)
		want(t, "what another instance sees", peek(t, other).Remaining, 900)
		s := lim.Stats()
		want(t, "decisions", decisions(s), 103)
		want(t, "granted", s.TokensGranted, s.TokensReturned+s.Allowed[hybrid.SourceLease])
	})
}

// TestFloodOfKeysOpensNoLimit has somebody who has used up his limit send ten
// thousand other keys, so that his own may be forgotten.
func TestFloodOfKeysOpensNoLimit(t *testing.T) {
	for _, flood := range []int{50, 200, 10_000} {
		for _, before := range []bool{false, true} { // did he use it up before the outage?
			bubble(t, func(t *testing.T, r *redistest.Mini) {
				lim := start(t, r, hybrid.PerHour(100), hybrid.WithMaxKeys(100), hybrid.WithExpectedInstances(2))
				warm(t, lim)
				if before {
					want(t, "of Redis", drain(t, lim, "victim"), 100)
				}
				r.Kill()
				trip(t, lim)
				if !before {
					want(t, "of the share", drain(t, lim, "victim"), 50)
				}
				for k := range flood {
					allowN(t, lim, fmt.Sprint("flood ", k), 1)
				}
				want(t, fmt.Sprintf("after %d keys, used up before: %v", flood, before), drain(t, lim, "victim"), 0)
				if n := lim.Stats().Keys; n > 100 {
					t.Errorf("%d keys remembered of at most 100", n)
				}
			})
		}
	}
}

func TestKeysBeyondTheBoundShareBucketsInAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		r.Kill()
		lim := start(t, r, hybrid.PerHour(4), hybrid.WithMaxKeys(10))
		trip(t, lim)
		admitted := 0
		for k := range 10_000 {
			if allowN(t, lim, fmt.Sprint(k), 1).Allowed {
				admitted++
			}
		}
		// Ten keys have their own bucket, all others share 64 of 4.
		if admitted > 10+64*4 || admitted < 64*4-8 {
			t.Errorf("%d of 10000 keys admitted, want about %d", admitted, 9+64*4)
		}
		want(t, "untracked", lim.Stats().Untracked >= 10_000-10, true)
	})
}
