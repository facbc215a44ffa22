package hybrid_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// TestCountersAddUp compares the counters with what the callers saw, by source,
// through leases, losses and an outage.
func TestCountersAddUp(t *testing.T) {
	seeded(t, runs(3, 60), func(t *testing.T, r *redistest.Mini, rnd *rand.Rand) {
		lim := start(t, r, hybrid.PerSecond(100+rnd.IntN(500)), hybrid.WithLocalShare(0.9), hybrid.WithMaxKeys(10))
		warm(t, lim)
		var mu sync.Mutex
		allowed := map[hybrid.Source]uint64{hybrid.SourceRedis: 1} // warm
		refused := map[hybrid.Source]uint64{}
		r.Delay(time.Duration(rnd.Int64N(int64(5 * time.Millisecond))))
		var working sync.WaitGroup
		for range 8 {
			seed := rnd.Uint64()
			working.Go(func() {
				rnd := rand.New(rand.NewPCG(seed, 2))
				for range 300 {
					key := "k"
					if rnd.IntN(4) == 0 {
						key = fmt.Sprint(rnd.IntN(20))
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rnd.Int64N(int64(50*time.Millisecond))))
					res, err := lim.Allow(ctx, key)
					cancel()
					if err == nil {
						mu.Lock()
						if res.Allowed {
							allowed[res.Source]++
						} else {
							refused[res.Source]++
						}
						mu.Unlock()
					}
					time.Sleep(time.Duration(rnd.Int64N(int64(15 * time.Millisecond))))
				}
			})
		}
		working.Go(func() {
			time.Sleep(500 * time.Millisecond)
			r.Kill()
			time.Sleep(500 * time.Millisecond)
			r.RestartEmpty()
		})
		working.Wait()
		time.Sleep(2 * time.Second) // idle leases are returned
		s := lim.Stats()
		for source := hybrid.SourcePrefilter; source <= hybrid.SourceDegraded; source++ {
			want(t, fmt.Sprint("admitted by ", source), s.Allowed[source], allowed[source])
			want(t, fmt.Sprint("refused by ", source), s.Refused[source], refused[source])
		}
		want(t, "granted = spent + returned + expired", s.TokensGranted,
			s.Allowed[hybrid.SourceLease]+s.TokensReturned+s.TokensExpired)
		if s.Allowed[hybrid.SourceLease] == 0 || s.Allowed[hybrid.SourceDegraded] == 0 {
			t.Errorf("nothing was tried: %+v", s)
		}
		want(t, "waiting", s.Waiting, 0)
	})
}

func TestGrantedTokensAreAccountedFor(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		limit := hybrid.PerHour(1).WithBurst(10_000)
		lim := start(t, r, limit)
		every(t, lim, 500, time.Millisecond, func(hybrid.Result) {})
		s := lim.Stats()
		root := peek(t, start(t, r, limit)).Remaining
		held := peek(t, lim).Remaining - root
		want(t, "held", held > 0, true)
		want(t, "granted", s.TokensGranted, s.Allowed[hybrid.SourceLease]+uint64(held))
		want(t, "root, spent and held", root+500+held, 10_000)
		want(t, "calls by class", fmt.Sprint(s.RedisCalls), fmt.Sprintf("map[none:%d]", s.RedisCalls["none"]))
	})
}

func TestStatsTellTheState(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(10), hybrid.WithExpectedInstances(4))
		s := lim.Stats()
		want(t, "instances", s.Instances, 4)
		want(t, "assumed", s.InstancesAssumed, false)
		want(t, "breaker", s.Breaker, "closed")
		want(t, "degraded", s.Degraded, false)
		want(t, "assumed by default", start(t, r, hybrid.PerSecond(10)).Stats().InstancesAssumed, true)
		for i := range 3 {
			allowN(t, lim, fmt.Sprint(i), 1)
		}
		want(t, "keys", lim.Stats().Keys, 3)
		r.Kill()
		trip(t, lim)
		begun := time.Now()
		time.Sleep(100 * time.Millisecond)
		s = lim.Stats()
		want(t, "breaker", s.Breaker, "open")
		want(t, "degraded", s.Degraded, true)
		want(t, "degraded for", s.DegradedFor, time.Since(begun))
		if s.RedisCalls["connection"] < 5 {
			t.Errorf("calls by class: %v", s.RedisCalls)
		}
		r.RestartEmpty()
		for lim.Stats().Degraded {
			time.Sleep(time.Millisecond)
		}
		total := lim.Stats().DegradedFor
		time.Sleep(time.Minute)
		want(t, "degraded for, in the end", lim.Stats().DegradedFor, total)
		want(t, "breaker", lim.Stats().Breaker, "closed")
	})
}
