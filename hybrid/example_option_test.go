package hybrid_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
)

// Sentinel, with a password and TLS.
func ExampleRedisOptions() {
	o := hybrid.RedisOptions("sentinel-1:26379", "sentinel-2:26379")
	o.MasterName = "limits"
	o.Username, o.Password = "limiter", os.Getenv("LIMITER_REDIS_PASSWORD")
	o.TLSConfig = &tls.Config{ServerName: "redis.example"}
	rdb := redis.NewUniversalClient(o)
	defer func() { _ = rdb.Close() }()
	fmt.Println(o.ReadTimeout, "and never twice:", o.MaxRetries)
	// Output: 50ms and never twice: -1
}

// The client must not give up before the limiter does.
func ExampleRedisOptionsFor() {
	const patience = 200 * time.Millisecond
	rdb := redis.NewUniversalClient(hybrid.RedisOptionsFor(patience, "redis.example:6379"))
	defer func() { _ = rdb.Close() }()
	lim, err := hybrid.New(rdb, hybrid.PerSecond(100), hybrid.WithRemoteTimeout(patience), quiet)
	fmt.Println(err)
	_ = lim.Close()
	// Output: <nil>
}

// Limiters of one name share their buckets, in whatever process they are.
func ExampleWithName() {
	addr, stop := startRedis()
	defer stop()
	for _, name := range []string{"api", "api", "login"} {
		lim, stop := limiterOn(addr, hybrid.PerHour(10), hybrid.WithName(name))
		res, err := lim.Allow(context.Background(), "ann")
		fmt.Println(name, res.Remaining, err)
		stop()
	}
	// Output:
	// api 9 <nil>
	// api 8 <nil>
	// login 9 <nil>
}

// No instance takes more than half of a key's limit, so that one which is stormed
// leaves something to the others.
func ExampleWithLocalShare() {
	addr, stop := startRedis()
	defer stop()
	for range 3 {
		lim, stop := limiterOn(addr, hybrid.PerHour(10), hybrid.WithName("api"), hybrid.WithLocalShare(0.5))
		defer stop()
		fmt.Println(admitted(lim, "ann"))
	}
	// Output:
	// 5
	// 5
	// 0
}

// Permits on lease: Redis is asked once for many requests.
func ExampleWithLeaseHorizon() {
	lim, stop := newLimiter(hybrid.PerSecond(10_000), hybrid.WithLeaseHorizon(5*time.Second))
	defer stop()
	for range 1000 {
		mustTake(lim, hybrid.Request{Key: "ann", N: 1})
	}
	fmt.Println("fewer than 100 calls:", lim.Stats().RedisCalls["none"] < 100)
	// Output: fewer than 100 calls: true
}

// At most so many keys are remembered here; Redis knows the others.
func ExampleWithMaxKeys() {
	lim, stop := newLimiter(hybrid.PerHour(1), hybrid.WithMaxKeys(2))
	defer stop()
	for _, key := range []string{"ann", "bob", "eve", "ann", "bob", "eve"} {
		fmt.Print(mustTake(lim, hybrid.Request{Key: key, N: 1}).Allowed, " ")
	}
	fmt.Println(lim.Stats().Keys, "keys")
	// Output: true true true false false false 2 keys
}

// Tell an operator, or a customer, before anybody is refused.
func ExampleWithNearLimit() {
	events := make(chan hybrid.Event, 8)
	lim, stop := newLimiter(hybrid.PerHour(10), hybrid.WithNearLimit(0.5),
		hybrid.WithEvents(func(e hybrid.Event) { events <- e }))
	defer stop()
	mustTake(lim, hybrid.Request{Key: "acme", N: 6})
	for e := range events {
		if near, ok := e.(hybrid.NearLimit); ok {
			fmt.Println(near.Left, "left of", near.Limit)
			return
		}
	}
	// Output: 4 left of 10/h
}

// Transitions are logged, single requests never.
func ExampleWithLogger() {
	lines := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.LevelKey || a.Key == slog.MessageKey || a.Key == "class" {
				return a
			}
			return slog.Attr{}
		},
	}))
	told := make(chan hybrid.Event, 8)
	lim, stop := newLimiter(hybrid.PerHour(10), hybrid.WithLogger(lines),
		hybrid.WithEvents(func(e hybrid.Event) { told <- e }))
	defer stop()
	lim.ForceDegraded(time.Hour)
	for e := range told {
		switch e.(type) {
		case hybrid.Degraded:
			lim.ForceDegraded(0)
		case hybrid.Recovered:
			return
		}
	}
	// Output:
	// level=WARN msg="rate limiter degraded" class=drill
	// level=INFO msg="rate limiter recovered"
}
