// Quickstart: one limit for all instances, seen through an outage of Redis.
//
//	go run ./examples/quickstart
//	go run ./examples/quickstart -redis redis://localhost:6379
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/resilient-go/limiter/hybrid"
)

func main() {
	url := flag.String("redis", "", "URL of a Redis server, such as redis://localhost:6379/0 (default: one inside this program)")
	flag.Parse()
	redis.SetLogger(&logging.VoidLogger{}) // go-redis would log each failed dial
	if err := run(context.Background(), os.Stdout, *url); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

// run tells what happens, a line at a time.
func run(ctx context.Context, out io.Writer, url string) error {
	say := log.New(out, "", 0)
	// plug is where the outage happens: between this program and Redis.
	plug := &plug{}
	options, where, stop, err := connect(url, plug)
	if err != nil {
		return err
	}
	defer stop()
	rdb := redis.NewUniversalClient(options)
	defer rdb.Close()
	if err := rdb.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("cannot use Redis at %s: %w; start one with redis-server, give its password as in redis://:password@host:port, or leave out -redis", where, err)
	}

	// From here on it is what a service does.
	events := make(chan hybrid.Event, 16)
	lim, err := hybrid.New(rdb, hybrid.PerMinute(30),
		hybrid.WithName("quickstart"),
		hybrid.WithExpectedInstances(1), // in an outage before Redis has told how many there are
		hybrid.WithEvents(func(e hybrid.Event) { events <- e }),
		hybrid.WithLogger(slog.New(slog.DiscardHandler))) // the events are printed below
	if err != nil {
		return err
	}
	defer func() { _ = lim.Close() }() // gives permits back
	say.Printf("%v per user for all instances together; Redis: %s", lim.Limit(), where)

	for _, key := range []string{"alice", "bob"} { // forget what the last run used up
		if err := lim.Reset(ctx, key); err != nil {
			return err
		}
	}
	if err := healthy(ctx, say, lim); err != nil {
		return err
	}
	return outage(ctx, say, lim, plug, events)
}

// healthy makes requests until one is refused.
func healthy(ctx context.Context, say *log.Logger, lim *hybrid.Limiter) error {
	allowed := map[hybrid.Source]int{}
	for {
		res, err := lim.Allow(ctx, "alice")
		if err != nil {
			return err // a closed limiter or a bad argument, never an outage
		}
		if !res.Allowed {
			say.Printf("alice: %2d allowed by asking Redis", allowed[hybrid.SourceRedis])
			say.Printf("alice: %2d allowed from permits on lease, without asking", allowed[hybrid.SourceLease])
			say.Printf("alice: the next one is refused by %v: retry after %v", res.Source, res.RetryAfter.Round(time.Millisecond))
			return nil
		}
		allowed[res.Source]++
	}
}
