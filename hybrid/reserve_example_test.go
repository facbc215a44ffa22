package hybrid_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
)

// An upload whose size is known when it is over.
func ExampleLimiter_Reserve() {
	addr, stop := startRedis()
	defer stop()
	rdb := redis.NewUniversalClient(hybrid.RedisOptions(addr))
	defer func() { _ = rdb.Close() }()
	lim, err := hybrid.New(rdb, hybrid.PerHour(100), hybrid.WithName("MiB per user"), quiet) // 36 s each
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = lim.Close() }()

	ctx := context.Background()
	upload, err := lim.Reserve(ctx, hybrid.Request{Key: "user:1", N: 80})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("due in", upload.Delay())
	next, err := lim.Reserve(ctx, hybrid.Request{Key: "user:1", N: 50})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("due in", next.Delay().Round(time.Minute))
	fmt.Println("given back:", next.Cancel())

	if err := upload.Settle(30); err != nil { // it was smaller than announced
		log.Fatal(err)
	}
	_, err = lim.Reserve(ctx, hybrid.Request{Key: "user:1", N: 101})
	fmt.Println(errors.Is(err, hybrid.ErrExceedsBurst))
	// Output:
	// due in 0s
	// due in 18m0s
	// given back: 50
	// true
}
