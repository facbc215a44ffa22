package hybrid_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
)

// Redis cannot be reached: each of four instances admits a fourth of the limit.
func ExampleWithExpectedInstances() {
	lim, stop := newOffline(hybrid.PerHour(100), hybrid.WithExpectedInstances(4))
	defer stop()
	fmt.Println(admitted(lim, "ann"))
	// Output: 25
}

// A fifth less than that.
func ExampleWithHeadroom() {
	lim, stop := newOffline(hybrid.PerHour(100), hybrid.WithExpectedInstances(4), hybrid.WithHeadroom(0.8))
	defer stop()
	fmt.Println(admitted(lim, "ann"))
	// Output: 20
}

// What must not happen twice is refused rather than guessed.
func ExampleWithOutagePolicy() {
	for _, policy := range []hybrid.OutagePolicy{hybrid.FailClosed, hybrid.FailOpen} {
		lim, stop := newOffline(hybrid.PerHour(1), hybrid.WithOutagePolicy(policy))
		for range 2 {
			res := mustTake(lim, hybrid.Request{Key: "ann", N: 1})
			fmt.Println(res.Allowed, "by", res.Source)
		}
		stop()
	}
	// Output:
	// false by degraded
	// false by degraded
	// true by degraded
	// true by degraded
}

// Two per hour on four instances: one instance's part is less than one request.
func ExampleWithStrictOutage() {
	usual, stop := newOffline(hybrid.PerHour(2), hybrid.WithExpectedInstances(4))
	defer stop()
	strict, stopStrict := newOffline(hybrid.PerHour(2), hybrid.WithExpectedInstances(4), hybrid.WithStrictOutage())
	defer stopStrict()
	fmt.Println(admitted(usual, "ann"), admitted(strict, "ann"))
	// Output: 1 0
}

// A Redis that never answers holds nobody up for longer than this.
func ExampleWithRemoteTimeout() {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	rdb := redis.NewUniversalClient(&redis.UniversalOptions{ // whatever the client's own patience
		Addrs: []string{silent.Addr().String()}, ReadTimeout: 3 * time.Second,
	})
	defer func() { _ = rdb.Close() }()
	lim, err := hybrid.New(rdb, hybrid.PerHour(10), hybrid.WithRemoteTimeout(20*time.Millisecond), quiet)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = lim.Close() }()
	res, err := lim.Allow(context.Background(), "ann")
	fmt.Println(res.Allowed, "by", res.Source, err)
	// Output: true by degraded <nil>
}

// The part of an instance that is cut off is left to it for ten seconds.
func ExampleWithReservation() {
	lim, stop := newLimiter(hybrid.PerSecond(100), hybrid.WithReservation(10*time.Second))
	defer stop()
	fmt.Println(mustTake(lim, hybrid.Request{Key: "ann", N: 1}).Allowed)
	_, err := hybrid.New(redis.NewClient(&redis.Options{}), hybrid.PerSecond(100), hybrid.WithReservation(time.Hour))
	fmt.Println(err)
	// Output:
	// true
	// hybrid: WithReservation: must be from 0 to 10m0s, not 1h0m0s
}

// A drill: a fallback that is never used fails when it is needed.
func ExampleLimiter_ForceDegraded() {
	lim, stop := newLimiter(hybrid.PerHour(10))
	defer stop()
	lim.ForceDegraded(time.Minute)
	fmt.Println(mustTake(lim, hybrid.Request{Key: "ann", N: 1}).Source)
	lim.ForceDegraded(0)
	fmt.Println(mustTake(lim, hybrid.Request{Key: "bob", N: 1}).Source)
	// Output:
	// degraded
	// redis
}
