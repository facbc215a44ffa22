package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/bench/server"
	"github.com/resilient-go/limiter/hybrid"
)

// A setting is a fleet and its demand: each instance asks for each key at random,
// perSecond times in all.
type setting struct {
	instances, keys int
	horizon         time.Duration
	perSecond       int     // requests of the fleet
	load            float64 // demand by limit
}

var cases = []setting{
	// The holders of one key.
	{1, 1, 200 * time.Millisecond, 2000, 0.5},
	{20, 1, 200 * time.Millisecond, 2000, 0.5},
	{1000, 1, 200 * time.Millisecond, 1000, 0.5},
	{1, 1, 200 * time.Millisecond, 2000, 2},
	{20, 1, 200 * time.Millisecond, 2000, 2},
	{1000, 1, 200 * time.Millisecond, 1000, 2},
	// The horizon.
	{20, 1, 50 * time.Millisecond, 2000, 0.5},
	{20, 1, time.Second, 2000, 0.5},
	// The keys.
	{4, 100, 200 * time.Millisecond, 4000, 0.5},
	{4, 1000, 200 * time.Millisecond, 4000, 0.5},
	{4, 10_000, 200 * time.Millisecond, 4000, 0.5},
}

// figures are what a case gave.
type figures struct {
	requests, calls, script, cpu, core, bytes, refused, degraded float64
}

func (c setting) measure(r *server.Server, d time.Duration) (figures, error) {
	limit := hybrid.PerSecond(max(1, int(float64(c.perSecond)/c.load/float64(c.keys)))).WithBurst(max(10, c.perSecond/c.keys))
	fleet := make([]*hybrid.Limiter, c.instances)
	for i := range fleet {
		rdb := redis.NewUniversalClient(hybrid.RedisOptions(r.Addr)) // one each, as in real life
		defer func() { _ = rdb.Close() }()
		lim, err := hybrid.New(rdb, limit, hybrid.WithName("scaling"), hybrid.WithLeaseHorizon(c.horizon),
			hybrid.WithExpectedInstances(c.instances), hybrid.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			return figures{}, err
		}
		defer func() { _ = lim.Close() }()
		fleet[i] = lim
	}
	ask := c.traffic(fleet)
	ask(4 * time.Second) // leases find their size
	before, refusedBefore, degradedBefore, all := count(fleet)
	began, err := r.Usage()
	if err != nil {
		return figures{}, err
	}
	start := time.Now()
	ask(d)
	took := time.Since(start).Seconds()
	ended, err := r.Usage()
	if err != nil {
		return figures{}, err
	}
	bytes, err := r.KeyMemory()
	if err != nil {
		return figures{}, err
	}
	after, refused, degraded, allAfter := count(fleet)
	u := ended.Sub(began)
	n := float64(max(allAfter-all, 1))
	return figures{
		requests: float64(allAfter-all) / took,
		calls:    float64(after-before) / took,
		script:   u.ScriptTime.Seconds() * 1e6 / float64(max(u.Scripts, 1)),
		cpu:      u.CPU.Seconds() * 1e6 / float64(max(u.Scripts, 1)),
		core:     u.CPU.Seconds() / took,
		bytes:    float64(bytes),
		refused:  float64(refused-refusedBefore) / n,
		degraded: float64(degraded-degradedBefore) / n,
	}, nil
}

// traffic asks at fixed times: of a random instance for a random key, in batches of
// a millisecond, by as many goroutines as there are cores to keep them busy.
func (c setting) traffic(fleet []*hybrid.Limiter) func(time.Duration) {
	names := make([]string, c.keys)
	for i := range names {
		names[i] = fmt.Sprintf("user:%06d", i)
	}
	return func(d time.Duration) {
		const lanes = 64 // who waits for Redis holds up no other
		var all sync.WaitGroup
		start := time.Now()
		for lane := range lanes {
			all.Go(func() {
				r := rand.New(rand.NewPCG(uint64(lane), 1))
				rate := float64(c.perSecond) / lanes
				for n := 0; ; n++ {
					at := time.Duration((float64(n) + float64(lane)/lanes) / rate * float64(time.Second))
					if at >= d {
						return
					}
					time.Sleep(time.Until(start.Add(at)))
					_, _ = fleet[r.IntN(len(fleet))].Allow(context.Background(), names[r.IntN(len(names))])
				}
			})
		}
		all.Wait()
	}
}

// count adds up calls to Redis, refusals, decisions of the outage policy, and all.
func count(fleet []*hybrid.Limiter) (calls, refused, degraded, all uint64) {
	for _, lim := range fleet {
		s := lim.Stats()
		for _, n := range s.RedisCalls {
			calls += n
		}
		for source, n := range s.Allowed {
			all += n
			if source == hybrid.SourceDegraded {
				degraded += n
			}
		}
		for source, n := range s.Refused {
			refused += n
			all += n
			if source == hybrid.SourceDegraded {
				degraded += n
			}
		}
	}
	return calls, refused, degraded, all
}
