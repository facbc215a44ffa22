package hybrid_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// randomLimit has a period that divides nothing evenly as often as not.
func randomLimit(rnd *rand.Rand) hybrid.Limit {
	periods := []time.Duration{
		time.Second, 3 * time.Second, 7 * time.Second, time.Minute, 100 * time.Millisecond, 1700 * time.Millisecond,
		time.Hour, time.Millisecond, 999_999 * time.Microsecond,
	}
	return hybrid.Per(1+rnd.IntN(300), periods[rnd.IntN(len(periods))]).WithBurst(1 + rnd.IntN(100))
}

// TestWaitingRetryAfterSucceeds loads a key at random, lets it rest, and takes
// a refused request at its word: after RetryAfter it passes, and RetryAfter is
// never 0.
func TestWaitingRetryAfterSucceeds(t *testing.T) {
	seeded(t, runs(8, 400), func(t *testing.T, r *redistest.Mini, rnd *rand.Rand) {
		for round := range 5 {
			limit := randomLimit(rnd)
			options := []hybrid.Option{hybrid.WithName(fmt.Sprint("round ", round))}
			shared := rnd.IntN(3) == 0
			lims := make([]*hybrid.Limiter, 1+rnd.IntN(3))
			for i := range lims {
				lims[i] = start(t, r, limit, options...)
			}
			largest := limit.Burst()
			if shared { // the share of one instance is its own affair: it is alone
				s := 1/float64(limit.Burst()) + rnd.Float64()*(1-1/float64(limit.Burst()))
				largest = int(s*float64(limit.Burst()) + 1e-9)
				lims = []*hybrid.Limiter{start(t, r, limit, append(options, hybrid.WithLocalShare(s))...)}
			}
			for range 5 {
				pause := time.Duration(rnd.Int64N(int64(limit.Period()/time.Duration(limit.Count())) + 1000))
				for range rnd.IntN(40) { // leases are out afterwards
					allowN(t, lims[rnd.IntN(len(lims))], "k", 1+rnd.IntN(1+largest/4))
					time.Sleep(min(pause, 50*time.Millisecond))
				}
				if len(lims) > 1 {
					time.Sleep(200 * time.Millisecond) // what was told before is stale by then
				}
				lim, n := lims[rnd.IntN(len(lims))], 1+rnd.IntN(largest)
				begun := time.Now()
				for {
					res := allowN(t, lim, "k", n)
					if res.RetryAfter < 0 || res.Allowed != (res.RetryAfter == 0) || res.Allowed && time.Since(begun) > 0 {
						t.Fatalf("%v: %d tokens: %+v", limit, n, res)
					}
					if res.Allowed {
						continue // until it is refused
					}
					time.Sleep(res.RetryAfter)
					if after := allowN(t, lim, "k", n); !after.Allowed {
						t.Fatalf("%v, %d limiters, share %v: %d tokens: %+v and after RetryAfter %+v",
							limit, len(lims), shared, n, res, after)
					}
					break
				}
			}
		}
	})
}

func TestRetryAfterCountsLeasesOfOthers(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		limit := hybrid.PerSecond(100)
		rdb := r.Client(advised)
		gone := startOn(t, rdb, limit)
		for gone.Stats().TokensGranted < 10 {
			allow(t, gone)
		}
		held := int(gone.Stats().TokensGranted - gone.Stats().Allowed[hybrid.SourceLease])
		if err := rdb.Close(); err != nil { // it cannot give its lease back any more
			t.Fatal(err)
		}
		lim := start(t, r, limit)
		res := allowN(t, lim, "k", 100)
		// What is out is free when the lease ends, and then takes its time to come.
		retry := res.RetryAfter
		if least := 500*time.Millisecond + time.Duration(held)*10*time.Millisecond; res.Allowed || retry < least {
			t.Fatalf("%+v, want a retry after %v with %d tokens out", res, least, held)
		}
		time.Sleep(retry - 10*time.Microsecond) // a few are for what leases may lose on the way
		want(t, "early", allowN(t, lim, "k", 100).Allowed, false)
		time.Sleep(10 * time.Microsecond)
		want(t, "in time", allowN(t, lim, "k", 100).Allowed, true)
	})
}

// TestOwnLeaseIsNotInTheWay: what is held on lease leaves no room in the share
// for a large request, so it is given back for one.
func TestOwnLeaseIsNotInTheWay(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(1000), hybrid.WithLocalShare(0.5))
		every(t, lim, 1000, 4*time.Millisecond, func(hybrid.Result) {})
		want(t, "a lease is held", peek(t, start(t, r, hybrid.PerSecond(1000))).Remaining < 990, true)
		res := allowN(t, lim, "k", 500)
		if res.Allowed || res.Source != hybrid.SourcePrefilter {
			t.Fatalf("%+v", res)
		}
		time.Sleep(res.RetryAfter)
		want(t, "after RetryAfter", allowN(t, lim, "k", 500).Allowed, true)
	})
}
