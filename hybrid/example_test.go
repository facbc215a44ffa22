package hybrid_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
)

// startRedis stands for your Redis server.
func startRedis() (addr string, stop func()) {
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	return server.Addr(), server.Close
}

var quiet = hybrid.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))

func Example() {
	addr, stop := startRedis()
	defer stop()

	const timeout = 400 * time.Millisecond // 50 ms, the default, is short for a busy test machine
	rdb := redis.NewUniversalClient(hybrid.RedisOptionsFor(timeout, addr))
	defer func() { _ = rdb.Close() }()
	lim, err := hybrid.New(rdb, hybrid.PerMinute(2), hybrid.WithExpectedInstances(4),
		hybrid.WithRemoteTimeout(timeout))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = lim.Close() }()

	for range 3 {
		res, err := lim.Allow(context.Background(), "user:10001")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(res.Allowed, res.Remaining, res.RetryAfter.Round(time.Second))
	}
	// Output:
	// true 1 0s
	// true 0 0s
	// false 0 30s
}

func ExampleLimiter_Wait() {
	addr, stop := startRedis()
	defer stop()
	rdb := redis.NewUniversalClient(hybrid.RedisOptions(addr))
	defer func() { _ = rdb.Close() }()
	lim, err := hybrid.New(rdb, hybrid.PerSecond(50).WithBurst(1), quiet)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = lim.Close() }()

	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	begun := time.Now()
	for range 3 { // the burst, and two more at 50 per second
		if _, err := lim.Wait(ctx, "job"); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(time.Since(begun) >= 39*time.Millisecond)
	// Output: true
}

func ExampleLimiter_Wait_deadline() {
	addr, stop := startRedis()
	defer stop()
	rdb := redis.NewUniversalClient(hybrid.RedisOptions(addr))
	defer func() { _ = rdb.Close() }()
	lim, err := hybrid.New(rdb, hybrid.PerHour(1), quiet)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = lim.Close() }()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err = lim.Wait(ctx, "report")
	fmt.Println(err)
	_, err = lim.Wait(ctx, "report") // due in an hour: refused at once
	fmt.Println(errors.Is(err, hybrid.ErrWouldExceedDeadline), errors.Is(err, context.DeadlineExceeded))
	// Output:
	// <nil>
	// true true
}

func ExampleWithEvents() {
	addr, stop := startRedis()
	rdb := redis.NewUniversalClient(hybrid.RedisOptions(addr))
	defer func() { _ = rdb.Close() }()
	events := make(chan hybrid.Event, 8)
	lim, err := hybrid.New(rdb, hybrid.PerSecond(100), quiet,
		hybrid.WithExpectedInstances(4),
		hybrid.WithEvents(func(e hybrid.Event) { events <- e }))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = lim.Close() }()

	stop() // Redis goes away; requests go on
	for {
		res, err := lim.Allow(context.Background(), "user:10001")
		if err != nil {
			log.Fatal(err)
		}
		if res.Source != hybrid.SourceDegraded {
			log.Fatal(res.Source)
		}
		select {
		case e := <-events:
			if d, ok := e.(hybrid.Degraded); ok {
				fmt.Println("degraded:", d.Class, "shared by", d.Instances)
				return
			}
		default:
		}
	}
	// Output: degraded: connection shared by 4
}

func ExampleParseLimit() {
	limit, err := hybrid.ParseLimit("1000/1h burst 50")
	fmt.Println(limit.Count(), limit.Period(), limit.Burst(), err)
	_, err = hybrid.ParseLimit("1000 an hour")
	fmt.Println(err)
	// Output:
	// 1000 1h0m0s 50 <nil>
	// hybrid: Limit: "1000 an hour": not of the form COUNT/PERIOD [burst BURST]; want for example "100/s" or "1000/1h burst 50"
}

func ExampleLimit_UnmarshalText() {
	var config struct {
		Limits map[string]hybrid.Limit `json:"limits"`
	}
	err := json.Unmarshal([]byte(`{"limits": {"login": "5/m", "search": "7/3s burst 20"}}`), &config)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(config.Limits["login"], "-", config.Limits["search"])
	// Output: 5/m - 7/3s burst 20
}

func ExampleNew_config() {
	_, err := hybrid.New(redis.NewClient(&redis.Options{}), hybrid.PerSecond(10), hybrid.WithLocalShare(0.05))
	var bad *hybrid.ConfigError
	fmt.Println(errors.As(err, &bad), bad.Field)
	fmt.Println(err)
	// Output:
	// true WithLocalShare
	// hybrid: WithLocalShare: 0.05 of a burst of 10 is less than one request
}
