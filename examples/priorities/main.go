// Priorities: one bucket for important calls and for others, which leave its last
// fifth alone.
//
//	go run ./examples/priorities
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/resilient-go/limiter/hybrid"
)

func main() {
	redis.SetLogger(&logging.VoidLogger{}) // go-redis would log each failed dial
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "priorities:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	server, err := miniredis.Run() // stands for your Redis
	if err != nil {
		return err
	}
	defer server.Close()
	rdb := redis.NewUniversalClient(hybrid.RedisOptions(server.Addr()))
	defer func() { _ = rdb.Close() }()
	lim, err := hybrid.New(rdb, hybrid.PerHour(50),
		hybrid.WithName("mail"), hybrid.WithPriorityReserve(0.2),
		hybrid.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	defer func() { _ = lim.Close() }()

	say := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
	say("50 mails per hour for all instances together")
	newsletters, err := send(ctx, lim, hybrid.PriorityLow)
	if err != nil {
		return err
	}
	say("%d newsletters go out, then the last fifth is left to others", newsletters)
	receipts, err := send(ctx, lim, hybrid.PriorityNormal)
	if err != nil {
		return err
	}
	say("%d receipts still do", receipts)

	// In an outage each instance goes on with its part, and keeps a fifth of that.
	server.Close()
	if err := open(ctx, lim); err != nil {
		return err
	}
	say("Redis is gone: this instance, the only one, goes on with all 50")
	for _, kind := range []struct {
		name     string
		priority hybrid.Priority
	}{{"newsletters", hybrid.PriorityLow}, {"receipts", hybrid.PriorityNormal}} {
		n, err := sendTo(ctx, lim, "another account", kind.priority)
		if err != nil {
			return err
		}
		say("%d %s of another account go out", n, kind.name)
	}
	return nil
}

// send sends mails of an account until one is refused.
func send(ctx context.Context, lim *hybrid.Limiter, p hybrid.Priority) (int, error) {
	return sendTo(ctx, lim, "account 7", p)
}

func sendTo(ctx context.Context, lim *hybrid.Limiter, key string, p hybrid.Priority) (n int, err error) {
	for {
		res, err := lim.Take(ctx, hybrid.Request{Key: key, N: 1, Priority: p})
		if err != nil || !res.Allowed {
			return n, err
		}
		n++
	}
}

// open makes calls until the circuit breaker has noticed.
func open(ctx context.Context, lim *hybrid.Limiter) error {
	for i := 0; lim.Stats().Breaker == "closed"; i++ {
		if _, err := lim.Allow(ctx, fmt.Sprint("probe ", i)); err != nil {
			return err
		}
	}
	return nil
}
