// Playground: a fleet of limiters under load, and a page that shows what they do
// while you change the load and break Redis.
//
//	go run ./examples/playground
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	redis.SetLogger(&logging.VoidLogger{}) // go-redis would log each failed dial
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "playground:", err)
		os.Exit(1)
	}
}

// run serves the page until the context ends.
func run(ctx context.Context, out io.Writer, args []string) error {
	flags := flag.NewFlagSet("playground", flag.ContinueOnError)
	flags.SetOutput(out)
	addr := flags.String("addr", "127.0.0.1:8080", "where the page is served; port 0 takes a free one")
	kind := flags.String("redis", "auto", "auto: a redis-server process if there is one on PATH, else miniredis inside this program; "+
		"mini, server, sentinel, or the URL of a server of yours, which is left alone but for one key")
	s := defaults
	flags.IntVar(&s.Limit, "limit", s.Limit, "requests per second, for all instances together")
	flags.IntVar(&s.Burst, "burst", s.Burst, "how many may pass at once")
	flags.IntVar(&s.Load, "load", s.Load, "requests per second on all instances together")
	flags.StringVar(&s.Algorithm, "algorithm", s.Algorithm, "token bucket, leaky bucket, fixed window, sliding log or rolling window")
	flags.IntVar(&s.Instances, "instances", s.Instances, "how many instances")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unknown argument %q; -h lists the flags", flags.Arg(0))
	}
	if err := s.validate(); err != nil {
		return err
	}
	ln, err := net.Listen("tcp", *addr)
	if err != nil {
		return fmt.Errorf("%w; choose another address with -addr, such as -addr 127.0.0.1:0", err)
	}
	defer ln.Close()
	redis, err := connect(*kind)
	if err != nil {
		return err
	}
	defer redis.close()
	e, err := start(redis, s)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d instances share a limit of %v; Redis: %s\n", s.Instances, s.limit(), redis.where())
	fmt.Fprintf(out, "open http://%s in a browser; end with Ctrl-C\n", ln.Addr())
	return serve(ctx, ln, e)
}

// serve ends with the context, and the engine with it.
func serve(ctx context.Context, ln net.Listener, e *engine) error {
	server := &http.Server{Handler: e.handler(), ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(ln) }()
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	e.close() // ends the streams
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if server.Shutdown(last) != nil {
		_ = server.Close()
	}
	return err
}
