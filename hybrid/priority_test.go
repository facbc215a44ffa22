package hybrid_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// lowN asks for n tokens with low priority.
func lowN(t testing.TB, lim *hybrid.Limiter, key string, n int) hybrid.Result {
	t.Helper()
	res, err := lim.Take(t.Context(), hybrid.Request{Key: key, N: n, Priority: hybrid.PriorityLow})
	if err != nil {
		t.Fatalf("Take(%q, %d, low): %v", key, n, err)
	}
	return res
}

// drainLow is drain with low priority.
func drainLow(t testing.TB, lim *hybrid.Limiter, key string) int {
	t.Helper()
	for n := 0; ; n++ {
		if !lowN(t, lim, key, 1).Allowed {
			return n
		}
	}
}

func TestLowPriorityLeavesTheLastShare(t *testing.T) {
	for _, c := range []struct {
		burst  int
		option hybrid.Option
		low    int
	}{
		{10, nil, 8},
		{5, nil, 4},
		{4, nil, 4},
		{1, nil, 1},
		{14, nil, 12},
		{15, nil, 12},
		{10, hybrid.WithPriorityReserve(0), 10},
		{10, hybrid.WithPriorityReserve(0.5), 5},
		{10, hybrid.WithPriorityReserve(0.99), 1},
		{10, hybrid.WithPriorityReserve(0.3), 7},
	} {
		t.Run(fmt.Sprint(c.burst, " ", c.low), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *redistest.Mini) {
				limit := hybrid.PerHour(1).WithBurst(c.burst)
				options := []hybrid.Option{named, c.option}
				lim := start(t, r, limit, options...)
				want(t, "low ones", drainLow(t, lim, "k"), c.low)
				res := lowN(t, lim, "k", 1)
				want(t, "retry after", res.RetryAfter.Round(time.Second), time.Hour)
				want(t, "others", drain(t, lim, "k"), c.burst-c.low)
				// The last of the kept tokens are missing to the low ones, too.
				res = lowN(t, lim, "k", 1)
				want(t, "retry after all is gone", res.RetryAfter.Round(time.Second), time.Duration(c.burst-c.low+1)*time.Hour)
				time.Sleep(res.RetryAfter)
				want(t, "at that time", lowN(t, lim, "k", 1).Allowed, true)
				want(t, "and no second one", lowN(t, lim, "k", 1).Allowed, false)
			})
		})
	}
}

func TestLowPriorityHasALargestRequest(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, slow)
		_, err := lim.Take(t.Context(), hybrid.Request{Key: "k", N: 9, Priority: hybrid.PriorityLow})
		want(t, "nine of ten", errors.Is(err, hybrid.ErrExceedsBurst), true)
		want(t, "nothing is spent or asked", r.Counts().Runs, 0)
		want(t, "eight of ten", lowN(t, lim, "k", 8).Allowed, true)
		_, err = lim.Take(t.Context(), hybrid.Request{Key: "k", N: 1, Priority: 2})
		want(t, "another priority", err, hybrid.ErrInvalidPriority)
	})
}

// A refusal of low priority is remembered, so that a flood of them asks nobody, and
// it refuses nobody else.
func TestARefusalOfLowPriorityRefusesNobodyElse(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, slow)
		want(t, "low ones", drainLow(t, lim, "k"), 8)
		calls := r.Counts().Runs
		for range 100 {
			res := lowN(t, lim, "k", 1)
			want(t, "refused by", res.Source, hybrid.SourceDenied)
			want(t, "remaining", res.Remaining, 2)
		}
		want(t, "calls", r.Counts().Runs, calls)
		want(t, "another passes", allow(t, lim).Allowed, true)
		want(t, "still", lowN(t, lim, "k", 1).Allowed, false)
		want(t, "the last", allow(t, lim).Allowed, true)
		want(t, "none is left", allow(t, lim).Allowed, false)
		want(t, "nor for low", lowN(t, lim, "k", 1).Allowed, false)
		s := lim.Stats()
		want(t, "all are counted", s.Refused[hybrid.SourceDenied]+s.Refused[hybrid.SourceRedis], 104)
	})
}

// A large bucket lends lumps, which leave the last share at Redis too.
func TestLowPriorityOnLease(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		one := start(t, r, hybrid.PerHour(1000), named)
		two := start(t, r, hybrid.PerHour(1000), named)
		lows := 0
		for range 300 { // several horizons
			for range 5 {
				if lowN(t, one, "k", 1).Allowed {
					lows++
				}
			}
			time.Sleep(10 * time.Millisecond)
			settle()
		}
		want(t, "most came from leases", one.Stats().Allowed[hybrid.SourceLease] > 600, true)
		if lows < 780 || lows > 800 {
			t.Errorf("%d of low priority passed, want 780 to 800 of 1000", lows)
		}
		others := 0
		for range 2000 { // an instance that had none
			if allowN(t, two, "k", 1).Allowed {
				others++
			}
			time.Sleep(time.Millisecond)
		}
		if sum := lows + others + drain(t, one, "k"); sum < 995 || sum > 1001 { // one every 3.6 s comes in
			t.Errorf("%d and %d passed, want all 1000", lows, others)
		}
	})
}

func TestLowPriorityInAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerHour(20), hybrid.WithExpectedInstances(2))
		r.Kill()
		trip(t, lim)
		want(t, "low ones", drainLow(t, lim, "k"), 8)
		res := lowN(t, lim, "k", 1)
		want(t, "source", res.Source, hybrid.SourceDegraded)
		want(t, "retry after", res.RetryAfter.Round(time.Second), 6*time.Minute)
		want(t, "others", drain(t, lim, "k"), 2)
		want(t, "another key", drain(t, lim, "l"), 10)
		want(t, "retry after all is gone", lowN(t, lim, "l", 1).RetryAfter.Round(time.Second), 18*time.Minute)
	})
}

// What is held on lease goes on in an outage, and the last share of it is kept.
func TestALeaseKeepsItsLastShareInAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerHour(100_000), hybrid.WithExpectedInstances(1_000_000))
		heat(t, lim)
		r.Kill()
		trip(t, lim)
		lows, leased := 0, 0
		for lowN(t, lim, "k", 1).Source == hybrid.SourceLease {
			lows++
		}
		for allow(t, lim).Source == hybrid.SourceLease {
			leased++
		}
		if lows < 10 || leased < lows/8 || leased > lows { // a renewal may have been due
			t.Errorf("%d of low priority from the lease, and %d others; want a fifth left", lows, leased)
		}
	})
}

func TestLowPriorityLeavesTheLastOfTheLocalShare(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerHour(40), hybrid.WithLocalShare(0.25))
		want(t, "low ones", drainLow(t, lim, "k"), 8)
		res := lowN(t, lim, "k", 1)
		want(t, "source", res.Source, hybrid.SourcePrefilter)
		want(t, "retry after", res.RetryAfter.Round(time.Second), 6*time.Minute)
		want(t, "others", drain(t, lim, "k"), 2)
		_, err := lim.Take(t.Context(), hybrid.Request{Key: "l", N: 9, Priority: hybrid.PriorityLow})
		want(t, "nine of ten", errors.Is(err, hybrid.ErrExceedsBurst), true)
	})
}

// Under a lasting overload of low priority, on whatever instance, the others get
// what they ask for, the limit is used up, and the bound holds for all together.
func TestNormalPriorityIsServedUnderAnOverloadOfLow(t *testing.T) {
	const seconds = 20
	for _, limit := range []hybrid.Limit{hybrid.PerSecond(1000), hybrid.PerSecond(100), hybrid.PerSecond(20)} {
		t.Run(limit.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *redistest.Mini) {
				r.Delay(time.Millisecond)
				lims := []*hybrid.Limiter{start(t, r, limit, named), start(t, r, limit, named), start(t, r, limit, named)}
				var rec record
				var mu sync.Mutex
				asked, passed, lows := 0, 0, 0
				var all sync.WaitGroup
				load := func(lim *hybrid.Limiter, perSecond float64, low bool) {
					all.Go(func() {
						begun := time.Now()
						for i := 0; time.Since(begun) < seconds*time.Second; i++ {
							time.Sleep(time.Until(begun.Add(time.Duration(float64(i) / perSecond * 1e9))))
							var res hybrid.Result
							if low {
								res = lowN(t, lim, "k", 1)
							} else {
								res = allow(t, lim)
							}
							mu.Lock()
							settled := time.Since(begun) > 5*time.Second // they have found their parts
							if res.Allowed {
								rec.add(1)
							}
							switch {
							case low && res.Allowed:
								lows++
							case !low && settled:
								asked++
								if res.Allowed {
									passed++
								}
							}
							mu.Unlock()
						}
					})
				}
				load(lims[0], 2*perSecond(limit), true)
				load(lims[1], perSecond(limit), true)
				load(lims[1], perSecond(limit)/5, false)
				load(lims[2], perSecond(limit)/5, false)
				all.Wait()
				part := float64(passed) / float64(asked)
				used := float64(rec.total()) / (perSecond(limit)*seconds + float64(limit.Burst()))
				t.Logf("%.3f of the normal ones passed, %.3f of the limit was used, %d were low", part, used, lows)
				if part < 0.95 || used < 0.9 || used > 1.0001 || float64(lows) < perSecond(limit)*seconds/3 {
					t.Errorf("%.3f of the normal ones passed, %.3f of the limit was used, %d were low", part, used, lows)
				}
				rec.inBound(t, perSecond(limit), float64(limit.Burst()))
			})
		})
	}
}

func TestLowPriorityAllocatesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(1_000_000))
		for range 500 {
			allowN(t, lim, "k", 100)
			time.Sleep(time.Millisecond)
			settle()
		}
		for range 20 {
			lowN(t, lim, "small", 1)
		}
		denied := start(t, r, slow)
		drainLow(t, denied, "k")
		ctx := t.Context()
		low := hybrid.Request{Key: "k", N: 1, Priority: hybrid.PriorityLow}
		for source, lim := range map[hybrid.Source]*hybrid.Limiter{hybrid.SourceLease: lim, hybrid.SourceDenied: denied} {
			want(t, "allocations of "+source.String(), testing.AllocsPerRun(1000, func() {
				if res, err := lim.Take(ctx, low); err != nil || res.Source != source {
					t.Fatalf("%+v, %v", res, err)
				}
			}), 0)
		}
	})
}

// Every algorithm keeps the last share, here and in an outage, and says when a
// request of low priority can pass.
func TestLowPriorityWithEveryAlgorithm(t *testing.T) {
	for _, a := range []hybrid.Algorithm{hybrid.TokenBucket, hybrid.LeakyBucket, hybrid.FixedWindow, hybrid.SlidingLog, hybrid.RollingWindow} {
		t.Run(a.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *redistest.Mini) {
				lim := start(t, r, hybrid.PerHour(10), named, hybrid.WithAlgorithm(a))
				want(t, "low ones", drainLow(t, lim, "k"), 8)
				want(t, "others", drain(t, lim, "k"), 2)
				res := lowN(t, lim, "k", 1)
				time.Sleep(res.RetryAfter)
				want(t, "after RetryAfter", lowN(t, lim, "k", 1).Allowed, true)
				_, err := lim.Take(t.Context(), hybrid.Request{Key: "k", N: 9, Priority: hybrid.PriorityLow})
				want(t, "nine of ten", errors.Is(err, hybrid.ErrExceedsBurst), true)
				r.Kill()
				trip(t, lim)
				want(t, "low ones in an outage", drainLow(t, lim, "l"), 8)
				want(t, "others in an outage", drain(t, lim, "l"), 2)
			})
		})
	}
}
