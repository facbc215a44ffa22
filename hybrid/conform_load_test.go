package hybrid_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// Across the end of a window a fixed window admits twice the limit, by definition. No
// other algorithm admits a burst and soon another one.
func TestBurstsAtABoundary(t *testing.T) {
	conform(t, func(t *testing.T, r *redistest.Mini, algo hybrid.Algorithm) {
		limit := hybrid.PerSecond(100)
		lims := clients(t, r, 2, limit, hybrid.WithAlgorithm(algo))
		warm(t, lims[0])
		warm(t, lims[1])
		var rec record
		burst := func() {
			for i := range 200 {
				if allow(t, lims[i/100]).Allowed {
					rec.add(1)
				}
			}
		}
		if allow(t, lims[0]).Allowed { // here a window begins, and a first counter
			rec.add(1)
		}
		time.Sleep(985 * time.Millisecond)
		burst()
		time.Sleep(20 * time.Millisecond)
		burst()
		got, twice := rec.most(100*time.Millisecond), algo == hybrid.FixedWindow
		t.Logf("%d in a tenth of a second", got)
		if twice && got != 199 || !twice && got > 100+3 { // a bucket gains two in 20 ms
			t.Errorf("%d were admitted across the boundary", got)
		}
		keeps(t, algo, limit, &rec)
	})
}

// Twenty times the limit for an hour: it is used up, and never exceeded.
func TestOverloadUsesUpTheLimit(t *testing.T) {
	conform(t, func(t *testing.T, r *redistest.Mini, algo hybrid.Algorithm) {
		n := runs(1, 60) // per minute
		limit := hybrid.PerMinute(n)
		lims := clients(t, r, 2, limit, hybrid.WithAlgorithm(algo), hybrid.WithLeaseHorizon(5*time.Second))
		var (
			rec   record
			wg    sync.WaitGroup
			begun = time.Now()
		)
		for i, lim := range lims {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 37 * time.Millisecond)
				for time.Since(begun) < time.Hour {
					if allow(t, lim).Allowed {
						rec.add(1)
					}
					time.Sleep(6 * time.Second / time.Duration(n))
				}
			})
		}
		wg.Wait()
		due := 60 * n
		t.Logf("%d of %d", rec.total(), due)
		// A window begins with a request, which come at a twentieth of the limit.
		if got := rec.total(); got < due*94/100 || got > due+2*n {
			t.Errorf("%d were admitted in an hour, want about %d", got, due)
		}
		keeps(t, algo, limit, &rec)
	})
}

// Two hundred clients that come back when they are told, and a little later, use
// up the limit between them.
func TestClientsThatBackOffUseTheLimit(t *testing.T) {
	conform(t, func(t *testing.T, r *redistest.Mini, algo hybrid.Algorithm) {
		limit, length := hybrid.PerSecond(100), 5*time.Second
		lims := clients(t, r, 2, limit, hybrid.WithAlgorithm(algo))
		ctx, cancel := context.WithTimeout(t.Context(), length)
		defer cancel()
		var rec record
		var wg sync.WaitGroup
		backoff, err := hybrid.NewBackoff(10*time.Millisecond, 200*time.Millisecond, hybrid.FullJitter)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 200 {
			wg.Go(func() {
				for ctx.Err() == nil {
					_, err := hybrid.Retry(ctx, lims[i%2], hybrid.Request{Key: "k", N: 1}, hybrid.Retries{Backoff: backoff},
						func(context.Context) (int, error) { rec.add(1); return 0, nil })
					if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, hybrid.ErrLimited) {
						t.Error(err)
					}
					time.Sleep(5 * time.Millisecond)
				}
			})
		}
		wg.Wait()
		budget := 100 * 5
		t.Logf("%d of %d", rec.total(), budget)
		if got := rec.total(); got < budget*95/100 {
			t.Errorf("%d were admitted, want 95 %% of %d", got, budget)
		}
		keeps(t, algo, limit, &rec)
	})
}

// Whatever is asked on several instances, by callers that wait, leave and come
// back, with answers that are slow: what the algorithm states of every window holds.
func TestAllAlgorithmsKeepTheirBound(t *testing.T) {
	for _, algo := range everyAlgorithm {
		t.Run(algo.String(), func(t *testing.T) {
			seeded(t, runs(2, 100), func(t *testing.T, r *redistest.Mini, rnd *rand.Rand) {
				n := []int{5, 30, 200, 1000}[rnd.IntN(4)]
				limit := hybrid.Per(n, []time.Duration{300 * time.Millisecond, time.Second, 1700 * time.Millisecond}[rnd.IntN(3)])
				l := load{largest: 1 + n/3, lims: clients(t, r, 3, limit, hybrid.WithAlgorithm(algo))}
				l.stop = time.Now().Add(4 * time.Second)
				l.run(t, rnd, 3, 20*time.Millisecond)
				keeps(t, algo, limit, &l.all)
				if l.all.total() < n {
					t.Errorf("only %d were admitted with %v", l.all.total(), limit)
				}
			})
		})
	}
}
