// LLM budget: a limit on the tokens of a language model, whose number is known only
// when the answer is there. An estimate is reserved before the call and corrected
// after it.
//
//	go run ./examples/llmbudget
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
)

func main() {
	server, err := miniredis.Run() // stands for your Redis
	if err == nil {
		defer server.Close()
		err = run(context.Background(), os.Stdout, server.Addr())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "llmbudget:", err)
		os.Exit(1)
	}
}

// A call of a model: what it may cost at most, and what it costs.
type call struct {
	team             string
	estimate, actual int
}

var calls = []call{
	{"search", 4000, 1200}, // shorter than expected: the rest comes back
	{"search", 4000, 3900},
	{"search", 4000, 6500}, // a tool answered at length: charged afterwards, in debt
	{"search", 1000, 1000}, // waits until the debt is paid
	{"chat", 9000, 25000},  // beyond a debt of the whole budget
	{"chat", 9000, 100},
}

func run(ctx context.Context, out io.Writer, addr string) error {
	rdb := redis.NewUniversalClient(hybrid.RedisOptions(addr))
	defer func() { _ = rdb.Close() }()
	lim, err := hybrid.New(rdb, hybrid.PerHour(10_000), // tokens, for each team
		hybrid.WithName("llm"), hybrid.WithExpectedInstances(1),
		hybrid.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	defer func() { _ = lim.Close() }()
	for _, c := range calls {
		if err := ask(ctx, out, lim, c); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(out, "%d tokens could not be charged to anybody\n", lim.Stats().TokensUnaccounted)
	return err
}

// ask calls the model if the budget allows it soon.
func ask(ctx context.Context, out io.Writer, lim *hybrid.Limiter, c call) error {
	say := func(format string, args ...any) {
		_, _ = fmt.Fprintf(out, "%-6s  %4d reserved: "+format+"\n", append([]any{c.team, c.estimate}, args...)...)
	}
	booked, err := lim.Reserve(ctx, hybrid.Request{Key: c.team, N: c.estimate})
	var limited *hybrid.LimitedError
	switch {
	case errors.As(err, &limited):
		say("refused, again in %v", limited.Result.RetryAfter.Round(time.Second))
		return nil
	case err != nil:
		return err
	}
	if wait := booked.Delay(); wait > 0 {
		// A service would wait, as long as its caller has time: booked.Wait(ctx). This
		// demonstration has none.
		before := messages(lim)
		back := booked.Cancel()
		say("due in %v, so it is cancelled and %d come back", wait.Round(time.Second), back)
		return arrived(ctx, lim, before)
	}
	before := messages(lim)
	if err := booked.Settle(c.actual); err != nil { // with what the model says it has used
		return err
	}
	if c.actual != c.estimate {
		if err := arrived(ctx, lim, before); err != nil {
			return err
		}
	}
	left, err := lim.Peek(ctx, c.team)
	if err != nil {
		return err
	}
	say("%d used, %d left", c.actual, left.Remaining)
	return nil
}

// messages is how many messages about keys Redis has answered.
func messages(lim *hybrid.Limiter) uint64 {
	return lim.Stats().RedisCallsByOperation["acquire"]["none"]
}

// arrived waits until one more message has been answered: a correction travels in
// the background, and this demonstration wants to show what it does.
func arrived(ctx context.Context, lim *hybrid.Limiter, before uint64) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for messages(lim) == before {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
