// Prometheus: the numbers of a limiter on /metrics.
//
//	cd examples/prometheus && go run . -serve
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/resilient-go/limiter/contrib/promlimit"
	"github.com/resilient-go/limiter/hybrid"
)

func main() {
	url := flag.String("redis", "", "URL of a Redis server (default: one inside this program)")
	addr := flag.String("addr", "127.0.0.1:0", "where to serve")
	stay := flag.Bool("serve", false, "go on serving, for a Prometheus of yours")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *url, *addr, *stay); err != nil {
		fmt.Fprintln(os.Stderr, "prometheus:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, redisURL, addr string, stay bool) error {
	rdb, stop, err := connect(ctx, redisURL)
	if err != nil {
		return err
	}
	defer stop()
	lim, err := hybrid.New(rdb, hybrid.PerMinute(5), hybrid.WithName("api"))
	if err != nil {
		return err
	}
	defer func() { _ = lim.Close() }()
	// A service has one registry, and registers each limiter in it.
	registry := prometheus.NewRegistry()
	if err := registry.Register(promlimit.NewCollector(lim)); err != nil {
		return err
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("%w; choose another address with -addr", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(ln) }()
	defer func() { _ = server.Close(); <-ended }()
	url := "http://" + ln.Addr().String() + "/metrics"
	fmt.Fprintln(out, "serving", url)

	if err := lim.Reset(ctx, "user:1"); err != nil { // forget what the last run used up
		return err
	}
	allowed, refused := 0, 0
	for range 8 {
		res, err := lim.Allow(ctx, "user:1")
		if err != nil {
			return err
		}
		if res.Allowed {
			allowed++
		} else {
			refused++
		}
	}
	fmt.Fprintf(out, "%d allowed, %d refused; some of what Prometheus reads:\n", allowed, refused)
	if err := show(ctx, out, url); err != nil || !stay {
		return err
	}
	<-ctx.Done()
	return nil
}

// show prints a few of the series.
func show(ctx context.Context, out io.Writer, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		for _, name := range []string{"degraded", "instances", "keys"} {
			if strings.HasPrefix(lines.Text(), "resilient_limiter_"+name+"{") {
				fmt.Fprintln(out, lines.Text())
			}
		}
	}
	return lines.Err()
}
