package hybrid_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
)

// A call has to keep the limit of its user and that of its route.
func ExampleCombine() {
	addr, stop := startRedis()
	defer stop()
	rdb := redis.NewUniversalClient(hybrid.RedisOptions(addr))
	defer func() { _ = rdb.Close() }()
	limiter := func(name string, limit hybrid.Limit) *hybrid.Limiter {
		lim, err := hybrid.New(rdb, limit, hybrid.WithName(name), quiet)
		if err != nil {
			log.Fatal(err)
		}
		return lim
	}
	users, routes := limiter("user", hybrid.PerMinute(10)), limiter("route", hybrid.PerMinute(3))
	defer func() { _ = users.Close() }()
	defer func() { _ = routes.Close() }()

	ctx := context.Background()
	for range 4 {
		c, err := hybrid.Combine(ctx,
			hybrid.Part{Limiter: users, Request: hybrid.Request{Key: "10001", N: 1}},
			hybrid.Part{Limiter: routes, Request: hybrid.Request{Key: "GET /report", N: 1}})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(c.Allowed, c.Refused, c.Result.RetryAfter.Round(time.Second))
	}
	left, err := users.Peek(ctx, "10001")
	fmt.Println(left.Remaining, err)
	// Output:
	// true  0s
	// true  0s
	// true  0s
	// false route 20s
	// 7 <nil>
}
