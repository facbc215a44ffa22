package main

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
)

// key is what all requests ask for.
const key = "everybody"

// An instance is one of a service: a limiter with a client of its own.
type instance struct {
	wire  *wire
	rdb   redis.UniversalClient
	lim   *hybrid.Limiter
	calls uint64 // to Redis, as of the last frame
}

// startFleet makes the instances. Their events go to log, with the instance's place.
func startFleet(redis setup, s Settings, log func(i int, e hybrid.Event)) ([]*instance, error) {
	var fleet []*instance
	for i := range s.Instances {
		in := &instance{wire: newWire()}
		in.rdb = redis.client(in.wire)
		lim, err := hybrid.New(in.rdb, s.limit(),
			hybrid.WithName("playground"),
			hybrid.WithExpectedInstances(s.Instances),
			hybrid.WithAlgorithm(algorithms[s.Algorithm]),
			hybrid.WithLocalShare(s.Share),
			hybrid.WithLeaseHorizon(time.Duration(s.Horizon)*time.Millisecond),
			hybrid.WithEvents(func(e hybrid.Event) { log(i, e) }),
			hybrid.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			closeQuietly(in.rdb)
			closeFleet(fleet)
			return nil, err
		}
		in.lim = lim
		fleet = append(fleet, in)
	}
	connectAll(fleet)
	return fleet, nil
}

// connectAll opens a connection for each instance, so that the first requests do
// not wait for that. It is no fault if Redis is down.
func connectAll(fleet []*instance) {
	var all sync.WaitGroup
	for _, in := range fleet {
		all.Go(func() { _ = in.rdb.Ping(context.Background()).Err() })
	}
	all.Wait()
}

// closeFleet gives the leases back, as far as Redis can be reached.
func closeFleet(fleet []*instance) {
	var all sync.WaitGroup
	for _, in := range fleet {
		all.Go(func() {
			closeQuietly(in.lim)
			closeQuietly(in.rdb)
		})
	}
	all.Wait()
}

// closeQuietly closes what may have been cut off.
func closeQuietly(c io.Closer) { _ = c.Close() }

// redisCalls is how many calls were made since it was asked last.
func (in *instance) redisCalls(stats hybrid.Stats) int {
	var total uint64
	for _, n := range stats.RedisCalls {
		total += n
	}
	since := total - in.calls
	in.calls = total
	return int(since)
}
