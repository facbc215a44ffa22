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

// A download costs what was sent, and nobody is made to wait for it.
func ExampleLimiter_ReserveNow() {
	lim, stop := newLimiter(hybrid.PerHour(100)) // megabytes
	defer stop()
	ctx := context.Background()
	download, err := lim.ReserveNow(ctx, hybrid.Request{Key: "ann", N: 80})
	if err != nil {
		log.Fatal(err)
	}
	_, err = lim.ReserveNow(ctx, hybrid.Request{Key: "ann", N: 50})
	fmt.Println(errors.Is(err, hybrid.ErrLimited))
	if err := download.Settle(20); err != nil { // it was broken off; the rest comes back soon
		log.Fatal(err)
	}
	// Output:
	// true
}
