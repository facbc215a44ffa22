package hybrid_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// A request takes from all tiers or from none: what one refuses is not missing in
// another, and the last to have enough says when.
func TestTiersAllOrNothing(t *testing.T) {
	check := func(t *testing.T, r redisServer) {
		lim := start(t, r, hybrid.PerHour(10), hybrid.WithTiers(hybrid.Per(25, 24*time.Hour)), hybrid.WithRemoteTimeout(240*time.Millisecond))
		key := anyKey(t)
		res := allowN(t, lim, key, 10)
		if !res.Allowed || res.Remaining != 0 || res.ResetAfter < 59*time.Minute || res.Limit != hybrid.PerHour(10) {
			t.Errorf("ten: %+v", res)
		}
		for range 5 {
			if res = allowN(t, lim, key, 10); res.Allowed || res.RetryAfter > time.Hour || res.RetryAfter < 59*time.Minute {
				t.Errorf("ten more: %+v", res)
			}
		}
		if _, err := lim.AllowN(t.Context(), key, 11); !errors.Is(err, hybrid.ErrExceedsBurst) {
			t.Errorf("more than the smallest burst: %v", err)
		}
		if err := lim.Reset(t.Context(), key); err != nil {
			t.Error(err)
		}
		want(t, "after a reset", drain(t, lim, key), 10)
	}
	t.Run("redis-server", func(t *testing.T) { check(t, redistest.Server(t)) })
	t.Run("miniredis", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			check(t, r)
			lim := start(t, r, hybrid.PerHour(10), hybrid.WithTiers(hybrid.Per(25, 24*time.Hour)))
			want(t, "the first hour", drain(t, lim, "k"), 10)
			time.Sleep(time.Hour)
			want(t, "the second hour", drain(t, lim, "k"), 10)
			time.Sleep(time.Hour)
			// The day has gained 2 on its 5.
			want(t, "the third hour", drain(t, lim, "k"), 7)
			time.Sleep(250 * time.Millisecond)
			res := allow(t, lim)
			// The day gains one in 57.6 minutes, and has some of it.
			if res.Allowed || res.RetryAfter < 50*time.Minute || res.RetryAfter > 58*time.Minute {
				t.Errorf("when the day has none: %+v", res)
			}
			time.Sleep(res.RetryAfter)
			if res := allow(t, lim); !res.Allowed {
				t.Errorf("after RetryAfter: %+v", res)
			}
			p := allowN(t, lim, "k", 0)
			if p.Allowed || p.RetryAfter < 57*time.Minute || p.RetryAfter > 58*time.Minute || p.ResetAfter < 20*time.Hour {
				t.Errorf("a look: %+v", p)
			}
		})
	})
}

// Under demand tiers are decided from leases, and all instances together keep the bound
// of each of them.
func TestTiersKeepTheBoundOfEach(t *testing.T) {
	seeded(t, runs(3, 200), func(t *testing.T, r *redistest.Mini, rnd *rand.Rand) {
		second := hybrid.PerSecond(40 + rnd.IntN(200)).WithBurst(20 + rnd.IntN(200))
		further := []hybrid.Limit{
			hybrid.Per(second.Count(), 2*time.Second).WithBurst(second.Burst() * 2),
			hybrid.Per(second.Count(), 3*time.Second).WithBurst(second.Burst()*2 + 50),
		}[:1+rnd.IntN(2)]
		l := load{largest: 1 + second.Burst()/4}
		for range 3 {
			l.lims = append(l.lims, start(t, r, second, hybrid.WithTiers(further...)))
		}
		r.Delay(time.Duration(rnd.Int64N(int64(5 * time.Millisecond))))
		l.stop = time.Now().Add(4 * time.Second)
		l.run(t, rnd, 3, 15*time.Millisecond)
		for _, limit := range append(further, second) {
			l.all.inBound(t, perSecond(limit), float64(limit.Burst()))
		}
		if l.all.total() < second.Burst() {
			t.Errorf("only %d were admitted of a burst of %d", l.all.total(), second.Burst())
		}
	})
}

// Demand within all tiers is served from leases, with a call per horizon.
func TestTiersLend(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(5000), hybrid.WithTiers(hybrid.PerHour(1_000_000)))
		warm(t, lim)
		before := r.Counts()
		for range 2000 {
			if !allow(t, lim).Allowed {
				t.Fatal("refused")
			}
			time.Sleep(time.Millisecond)
		}
		if calls := r.Counts().Sub(before).EvalSHA; calls > 40 {
			t.Errorf("%d calls for 2000 requests", calls)
		}
		want(t, "keys with a lump", lim.Stats().Modes["lump"], 1)
	})
}

// Who waits gets the permit when the last tier has it; twenty times the limit for a
// long time use up the tightest tier.
func TestTiersAreUsedUp(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lims := []*hybrid.Limiter{}
		for range 2 {
			lims = append(lims, start(t, r, hybrid.PerSecond(10), hybrid.WithTiers(hybrid.PerMinute(120))))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		var rec record
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				for {
					if _, err := lims[i%2].Wait(ctx, "k"); err != nil {
						return
					}
					rec.add(1)
				}
			})
		}
		wg.Wait()
		if got := rec.total(); got < 700 || got > 720 {
			t.Errorf("%d in five minutes, want 120 and 600", got)
		}
		rec.inBound(t, 10, 10)
		rec.inBound(t, 2, 120)
	})
}

// In an outage each instance has its part of every tier, beginning with what was left
// of each, and what it took is charged to all of them afterwards.
func TestTiersInAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(10), hybrid.WithTiers(hybrid.PerMinute(60)), hybrid.WithExpectedInstances(2))
		warm(t, lim)
		for i := range 3 { // thirty of the minute's sixty, less what three seconds gain
			want(t, "taken before "+strconv.Itoa(i), drain(t, lim, "k"), 10)
			time.Sleep(time.Second)
		}
		r.Partition()
		for lim.Stats().Breaker != "open" {
			allowN(t, lim, "other", 1)
			time.Sleep(time.Millisecond)
		}
		var rec record
		for begun := time.Now(); time.Since(begun) < 40*time.Second; time.Sleep(10 * time.Millisecond) {
			if res := allow(t, lim); res.Allowed {
				rec.add(1)
				if res.Source != hybrid.SourceDegraded {
					t.Fatalf("%+v", res)
				}
			}
		}
		rec.inBound(t, 5, 5)
		rec.inBound(t, 0.5, 17.5) // a half of what the minute had, and a little more
		if got := rec.total(); got < 34 {
			t.Errorf("%d in forty seconds, want the half of 33 and 20", got)
		}
		if got := rec.most(2 * time.Second); got < 13 {
			t.Errorf("%d in the best two seconds: the tier of a minute is no bucket of its own", got)
		}
	})
}

// Tiers that are none, or that contradict something, are refused.
func TestTiersThatContradict(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		rdb := r.Client(advised)
		for name, options := range map[string][]hybrid.Option{
			"an invalid one": {hybrid.WithTiers(hybrid.PerHour(0))},
			"unlimited":      {hybrid.WithTiers(hybrid.Unlimited)},
			"blocked":        {hybrid.WithTiers(hybrid.Blocked)},
			"an algorithm":   {hybrid.WithTiers(hybrid.PerHour(100)), hybrid.WithAlgorithm(hybrid.FixedWindow)},
			"a share":        {hybrid.WithTiers(hybrid.PerHour(100)), hybrid.WithLocalShare(0.5)},
			"too many":       {hybrid.WithTiers(make([]hybrid.Limit, 9)...)},
		} {
			_, err := hybrid.New(rdb, hybrid.PerSecond(10), options...)
			var bad *hybrid.ConfigError
			if !errors.As(err, &bad) || bad.Field != "WithTiers" {
				t.Errorf("%s: %v", name, err)
			}
		}
		a := start(t, r, hybrid.PerSecond(10), hybrid.WithTiers(hybrid.PerHour(1000)))
		want(t, "the name", a.Name(), "10/s and 1000/h")
	})
}
