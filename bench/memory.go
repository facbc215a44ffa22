package main

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/resilient-go/limiter/bench/load"
	"github.com/resilient-go/limiter/bench/peers"
)

const (
	perKey     = "Redis bytes/key"
	keysPerKey = "Redis keys/key"
	heapPerKey = "heap bytes/key"
	touched    = 10_000
)

var memory = scenario{
	letter: "M", title: "Memory per key",
	about:   "10,000 keys such as user:004711 are asked for once each, by 4 goroutines, under a limit of 100 per hour, so that none is gone before it is measured.",
	cases:   []string{"asked for once"},
	columns: []column{{perKey, count}, {keysPerKey, figure}, {heapPerKey, count}},
	run: func(b *bench, round int) error {
		for _, p := range b.turn("M", round) {
			s, err := b.touch(p)
			if err != nil {
				return err
			}
			b.put("M", "asked for once", p, s)
		}
		return nil
	},
}

func (b *bench) touch(p peers.Peer) (sample, error) {
	if err := b.redis.Flush(); err != nil {
		return nil, err
	}
	names := load.Names(touched)
	before := heapNow()
	lim, err := p.Open(peers.Setup{Addr: b.redis.Addr, Name: "bench:", Rate: 100, Burst: 100, Period: time.Hour, Instances: 1})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	defer func() { _ = lim.Close() }()
	// The connections are open before the memory is read.
	ctx := context.Background()
	ask := func(from, to int) error {
		var all sync.WaitGroup
		errs := make(chan error, 4)
		for i := range 4 {
			all.Go(func() {
				for k := from + i; k < to; k += 4 {
					if err := insist(ctx, lim, names[k]); err != nil {
						errs <- err
						return
					}
				}
			})
		}
		all.Wait()
		close(errs)
		return <-errs
	}
	if err := ask(0, 160); err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	used, keys, err := b.redis.Memory()
	if err != nil {
		return nil, err
	}
	if err := ask(160, touched); err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	usedThen, keysThen, err := b.redis.Memory()
	if err != nil {
		return nil, err
	}
	n, grown := float64(touched-160), heapNow()-before
	runtime.KeepAlive(names)
	return sample{
		perKey:     math.Max(0, float64(usedThen-used)) / n,
		keysPerKey: float64(keysThen-keys) / n,
		heapPerKey: math.Max(0, float64(grown)) / touched,
	}, nil
}

// insist asks until there is a decision: a breaker that an earlier scenario has
// opened may take its time.
func insist(ctx context.Context, lim peers.Limiter, key string) (err error) {
	for range 100 {
		if _, err = lim.Allow(ctx, key); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return err
}
