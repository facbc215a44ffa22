package peers

import (
	"context"
	"errors"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
)

var ours = Peer{
	Name: "this library", Module: "github.com/resilient-go/limiter", Client: goRedis, Way: Leases,
	Counts: "token bucket", Open: openOurs,
}

var oursKey = Peer{
	Name: "this library, Key", Module: "github.com/resilient-go/limiter", Client: goRedis, Way: Leases,
	Counts: "token bucket", Open: openOursKey,
	Out: map[string]string{
		"B": "a handle is for one key",
		"C": "decides as the row above", "D": "decides as the row above", "M": "stores as the row above",
	},
}

// newHybrid makes one with default options, but for the number of instances.
func newHybrid(s Setup) (*hybrid.Limiter, redis.UniversalClient, error) {
	rdb := redis.NewUniversalClient(hybrid.RedisOptions(s.Addr))
	lim, err := hybrid.New(rdb, hybrid.Per(s.Rate, s.Period).WithBurst(s.Burst), hybrid.WithName(s.Name),
		hybrid.WithExpectedInstances(s.Instances), hybrid.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, nil, errors.Join(err, rdb.Close())
	}
	return lim, rdb, nil
}

// end closes both. What could not be given back to a Redis that is gone is no fault.
func end(lim *hybrid.Limiter, rdb redis.UniversalClient) error {
	err := lim.Close()
	var left *hybrid.CloseError
	if errors.As(err, &left) {
		err = nil
	}
	return errors.Join(err, rdb.Close())
}

func degraded(lim *hybrid.Limiter) uint64 {
	s := lim.Stats()
	return s.Allowed[hybrid.SourceDegraded] + s.Refused[hybrid.SourceDegraded]
}

func openOurs(s Setup) (Limiter, error) {
	lim, rdb, err := newHybrid(s)
	if err != nil {
		return nil, err
	}
	return decider{
		allow: func(ctx context.Context, key string) (bool, error) {
			res, err := lim.Allow(ctx, key)
			return res.Allowed, err
		},
		degraded: func() uint64 { return degraded(lim) },
		close:    func() error { return end(lim, rdb) },
	}, nil
}

func openOursKey(s Setup) (Limiter, error) {
	lim, rdb, err := newHybrid(s)
	if err != nil {
		return nil, err
	}
	handle := lim.Key("hot")
	return decider{
		allow: func(ctx context.Context, _ string) (bool, error) {
			res, err := handle.Allow(ctx)
			return res.Allowed, err
		},
		degraded: func() uint64 { return degraded(lim) },
		close:    func() error { return end(lim, rdb) },
	}, nil
}
