// HTTP per IP: ten requests per second from one address. The eleventh gets 429.
//
//	go run ./examples/httpip
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/hybrid/httplimit"
)

func main() {
	url := flag.String("redis", "", "URL of a Redis server (default: one inside this program)")
	addr := flag.String("addr", "127.0.0.1:0", "where to serve")
	stay := flag.Bool("serve", false, "go on serving, for requests of yours")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *url, *addr, *stay); err != nil {
		fmt.Fprintln(os.Stderr, "httpip:", err)
		os.Exit(1)
	}
}

// newHandler is what a service has: a limiter, and a middleware around its handler.
func newHandler(rdb redis.UniversalClient) (http.Handler, *hybrid.Limiter, error) {
	lim, err := hybrid.New(rdb, hybrid.PerSecond(10), hybrid.WithName("httpip"), hybrid.WithExpectedInstances(1))
	if err != nil {
		return nil, nil, err
	}
	// X-Forwarded-For is believed because the requests come from a proxy of ours.
	proxies := httplimit.TrustProxies(netip.MustParsePrefix("127.0.0.0/8"))
	limit, err := httplimit.New(lim, httplimit.WithKey(httplimit.ByIP(proxies)))
	if err != nil {
		return nil, nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello\n") })
	return limit(mux), lim, nil
}

func run(ctx context.Context, out io.Writer, redisURL, addr string, stay bool) error {
	rdb, stop, err := connect(ctx, redisURL)
	if err != nil {
		return err
	}
	defer stop()
	handler, lim, err := newHandler(rdb)
	if err != nil {
		return err
	}
	defer func() { _ = lim.Close() }()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("%w; choose another address with -addr", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(ln) }()
	defer func() { _ = server.Close(); <-ended }()

	url := "http://" + ln.Addr().String() + "/"
	fmt.Fprintf(out, "serving %s, %v per address\n", url, lim.Limit())
	if stay {
		<-ctx.Done()
		return nil
	}
	if err := visit(ctx, out, url, "203.0.113.7", 11); err != nil {
		return err
	}
	return visit(ctx, out, url, "198.51.100.9", 1)
}

// visit makes requests as a proxy passes them on, and tells how they were answered.
func visit(ctx context.Context, out io.Writer, url, client string, n int) error {
	defer http.DefaultClient.CloseIdleConnections()
	same, last := 0, ""
	say := func() { fmt.Fprintf(out, "%-12s  %2d x %s\n", client, same, last) }
	for range n {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		req.Header.Set("X-Forwarded-For", client)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		answer := resp.Status
		if wait := resp.Header.Get("Retry-After"); wait != "" {
			answer += fmt.Sprintf(", Retry-After: %s, RateLimit: %s", wait, resp.Header.Get("RateLimit"))
		}
		if answer != last && same > 0 {
			say()
			same = 0
		}
		same, last = same+1, answer
	}
	say()
	return nil
}
