package hybrid_test

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
)

// newLimiter makes a limiter on a Redis for one example.
func newLimiter(limit hybrid.Limit, options ...hybrid.Option) (lim *hybrid.Limiter, stop func()) {
	addr, stopRedis := startRedis()
	lim, stopLimiter := limiterOn(addr, limit, options...)
	return lim, func() {
		stopLimiter()
		stopRedis()
	}
}

// limiterOn makes one instance. By default a Redis that is slower than 50 ms is an
// outage, which says little on a busy test machine: the examples are more patient.
func limiterOn(addr string, limit hybrid.Limit, options ...hybrid.Option) (lim *hybrid.Limiter, stop func()) {
	const patience = 5 * time.Second
	rdb := redis.NewUniversalClient(hybrid.RedisOptionsFor(patience, addr))
	options = append([]hybrid.Option{
		hybrid.WithRemoteTimeout(patience), hybrid.WithLeaseHorizon(patience), hybrid.WithExpectedInstances(1),
		hybrid.WithLogger(slog.New(slog.DiscardHandler)),
	}, options...)
	lim, err := hybrid.New(rdb, limit, options...)
	if err != nil {
		log.Fatal(err)
	}
	return lim, func() {
		_ = lim.Close()
		_ = rdb.Close()
	}
}

// newOffline makes a limiter whose Redis cannot be reached.
func newOffline(limit hybrid.Limit, options ...hybrid.Option) (lim *hybrid.Limiter, stop func()) {
	o := hybrid.RedisOptions("redis.example:6379")
	o.Dialer = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no route to host") }
	rdb := redis.NewUniversalClient(o)
	lim, err := hybrid.New(rdb, limit, append([]hybrid.Option{quiet}, options...)...)
	if err != nil {
		log.Fatal(err)
	}
	return lim, func() {
		_ = lim.Close()
		_ = rdb.Close()
	}
}

// mustTake asks a limiter, and ends the example if that was wrong.
func mustTake(lim *hybrid.Limiter, r hybrid.Request) hybrid.Result {
	res, err := lim.Take(context.Background(), r)
	if err != nil {
		log.Fatal(err)
	}
	return res
}

// admitted tells how many requests pass until one is refused.
func admitted(lim *hybrid.Limiter, key string) (n int) {
	for mustTake(lim, hybrid.Request{Key: key, N: 1}).Allowed {
		n++
	}
	return n
}
