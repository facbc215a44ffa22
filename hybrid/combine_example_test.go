package hybrid_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/resilient-go/limiter/hybrid"
)

// A call has to keep the limit of its user and that of its route.
func ExampleCombine() {
	addr, stop := startRedis()
	defer stop()
	users, stopUsers := limiterOn(addr, hybrid.PerMinute(10), hybrid.WithName("user"))
	defer stopUsers()
	routes, stopRoutes := limiterOn(addr, hybrid.PerMinute(3), hybrid.WithName("route"))
	defer stopRoutes()

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
