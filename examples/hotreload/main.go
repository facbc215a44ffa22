// Hot reload: the limits live in a file, and a change applies without a restart.
//
//	go run ./examples/hotreload -rules examples/hotreload/limits.txt
//
// Change the file while the program runs. A wrong file is reported, and the rules
// from before go on.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
)

func main() {
	file := flag.String("rules", "", "the file with the rules, text or JSON (default: a demonstration with a file of its own)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	server, err := miniredis.Run() // stands for your Redis
	if err == nil {
		defer server.Close()
		if *file != "" {
			err = serve(ctx, os.Stdout, server.Addr(), *file)
		} else {
			err = demonstrate(ctx, os.Stdout, server.Addr())
		}
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "hotreload:", err)
		os.Exit(1)
	}
}

// start makes a limiter with the rules of a text.
func start(addr, text string) (lim *hybrid.Limiter, stop func(), err error) {
	rules, err := hybrid.ParseRules(text)
	if err != nil {
		return nil, nil, err
	}
	rdb := redis.NewUniversalClient(hybrid.RedisOptions(addr))
	lim, err = hybrid.New(rdb, hybrid.PerMinute(60), // for keys without a rule
		hybrid.WithName("api"), hybrid.WithRules(rules), hybrid.WithExpectedInstances(1),
		hybrid.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		_ = rdb.Close()
		return nil, nil, err
	}
	return lim, func() {
		_ = lim.Close()
		_ = rdb.Close()
	}, nil
}

// serve shows the rules each time they change, until the context ends.
func serve(ctx context.Context, out io.Writer, addr, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	lim, stop, err := start(addr, string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	defer stop()
	say := log.New(out, "", 0)
	say.Printf("%d rules; change %s, or end this with Ctrl-C", len(lim.Rules().Rules), file)
	return watch(ctx, file, string(text), time.Second, func(text string) { apply(say, lim, text) })
}

// apply puts the rules of a text in force, or says what is wrong with them.
func apply(say *log.Logger, lim *hybrid.Limiter, text string) {
	rules, err := hybrid.ParseRules(text)
	if err == nil {
		err = lim.SetRules(rules)
	}
	if err != nil {
		say.Printf("the old rules stay:\n%v", err)
		return
	}
	say.Printf("new rules:\n%v", rules)
}
