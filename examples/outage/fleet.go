package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
)

// tick is how often an instance makes its requests.
const tick = 5 * time.Millisecond

// A fleet is the instances and the load on them.
type fleet struct {
	stop     context.CancelFunc
	load     sync.WaitGroup
	closers  []func()
	closeAll sync.Once
}

func newFleet(client func() redis.UniversalClient, r *report) (*fleet, error) {
	ctx, stop := context.WithCancel(context.Background())
	f := &fleet{stop: stop}
	for i := range instances {
		rdb := client()
		lim, err := hybrid.New(rdb, limit, hybrid.WithName("outage"),
			hybrid.WithExpectedInstances(instances),
			hybrid.WithEvents(func(e hybrid.Event) { r.event(i+1, e) }),
			hybrid.WithLogger(slog.New(slog.DiscardHandler))) // the events are printed
		f.closers = append(f.closers, func() { _ = rdb.Close() })
		if err != nil {
			f.close()
			return nil, err
		}
		_ = rdb.Ping(ctx).Err() // so that the first request does not wait for a connection
		f.closers = append(f.closers, func() { _ = lim.Close() })
		f.load.Go(func() { f.run(ctx, lim, r) })
	}
	return f, nil
}

// close ends the load, then the limiters, then their clients.
func (f *fleet) close() {
	f.closeAll.Do(func() {
		f.stop()
		f.load.Wait()
		for i := len(f.closers) - 1; i >= 0; i-- {
			f.closers[i]()
		}
	})
}

// run makes the requests of one instance, whatever becomes of them.
func (f *fleet) run(ctx context.Context, lim *hybrid.Limiter, r *report) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	due := 0.0
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for due += tick.Seconds() * load / instances; due >= 1; due-- {
			f.load.Go(func() {
				began := time.Now()
				res, err := lim.Allow(context.WithoutCancel(ctx), "everybody")
				if err == nil {
					r.decision(res, time.Since(began))
				}
			})
		}
	}
}
