package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/resilient-go/limiter/hybrid"
)

const (
	// tick is how often requests are made.
	tick = 5 * time.Millisecond
	// mostInFlight bounds the requests of one instance that wait for an answer.
	mostInFlight = 2000
)

// A generator makes requests on the instances of a fleet, as many as the settings
// say, whatever becomes of them.
type generator struct {
	rate []atomic.Uint64 // microrequests per second, by instance
	stop context.CancelFunc
	all  sync.WaitGroup
}

// generate starts one. done is told of each decision, from many goroutines.
func generate(fleet []*instance, s Settings, begun time.Time, done func(i int, c call, res hybrid.Result)) *generator {
	ctx, cancel := context.WithCancel(context.Background())
	g := &generator{rate: make([]atomic.Uint64, len(fleet)), stop: cancel}
	g.set(s)
	for i, in := range fleet {
		g.all.Go(func() { g.run(ctx, i, in.lim, begun, done) })
	}
	return g
}

// set changes the load.
func (g *generator) set(s Settings) {
	for i := range g.rate {
		g.rate[i].Store(uint64(s.loadOn(i) * 1e6))
	}
}

// close waits for the last answers.
func (g *generator) close() {
	g.stop()
	g.all.Wait()
}

func (g *generator) run(ctx context.Context, i int, lim *hybrid.Limiter, begun time.Time, done func(int, call, hybrid.Result)) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	var inFlight atomic.Int64
	due, last := 0.0, time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := time.Now()
		// After a standstill of the machine nothing is made up for.
		due += min(now.Sub(last), 20*tick).Seconds() * float64(g.rate[i].Load()) / 1e6
		last = now
		for ; due >= 1; due-- {
			if inFlight.Load() >= mostInFlight {
				due = 0
				break
			}
			inFlight.Add(1)
			g.all.Go(func() {
				defer inFlight.Add(-1)
				c := call{start: time.Since(begun)}
				res, err := lim.Allow(context.WithoutCancel(ctx), key)
				c.end = time.Since(begun)
				if err == nil { // none but of a limiter that is being closed
					done(i, c, res)
				}
			})
		}
	}
}
