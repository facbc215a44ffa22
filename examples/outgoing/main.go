// Outgoing quota: two instances of a service call somebody else's, who allows ten
// requests per second for both together.
//
//	go run ./examples/outgoing
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/hybrid/httplimit"
)

func main() {
	url := flag.String("redis", "", "URL of a Redis server (default: one inside this program)")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *url); err != nil {
		fmt.Fprintln(os.Stderr, "outgoing:", err)
		os.Exit(1)
	}
}

// quota is what we allow ourselves. The burst is half of theirs: what leaves here at
// ten per second can arrive closer together.
var quota = hybrid.PerSecond(10).WithBurst(5)

const (
	instances = 2
	each      = 15 // calls of an instance
)

// client is what an instance has: a transport that waits for the shared quota.
func client(rdb redis.UniversalClient, base http.RoundTripper) (*http.Client, *hybrid.Limiter, error) {
	lim, err := hybrid.New(rdb, quota, hybrid.WithName("outgoing"), hybrid.WithExpectedInstances(instances))
	if err != nil {
		return nil, nil, err
	}
	transport, err := httplimit.NewTransport(lim, base)
	if err != nil {
		return nil, nil, err
	}
	return &http.Client{Transport: transport}, lim, nil
}

func run(ctx context.Context, out io.Writer, url string) error {
	rdb, stop, err := connect(ctx, url)
	if err != nil {
		return err
	}
	defer stop()
	server := httptest.NewServer(theirs())
	defer server.Close()
	plain := []*http.Client{{}, {}}
	answered, refused := call(ctx, plain, server.URL)
	fmt.Fprintf(out, "each for itself:  %2d answered, %2d refused by the service\n", answered, refused)

	server.Config.Handler = theirs() // a new bucket
	var clients []*http.Client
	for range instances {
		c, lim, err := client(rdb, nil)
		if err != nil {
			return err
		}
		defer func() { _ = lim.Close() }()
		clients = append(clients, c)
	}
	began := time.Now()
	answered, refused = call(ctx, clients, server.URL)
	fmt.Fprintf(out, "one quota:        %2d answered, %2d refused by the service, in %v\n", answered, refused, time.Since(began).Round(100*time.Millisecond))
	http.DefaultClient.CloseIdleConnections()
	return nil
}

// theirs is the service: ten requests per second, ten at once.
func theirs() http.Handler {
	bucket := rate.NewLimiter(10, 10)
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !bucket.Allow() {
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
}

// call makes the calls of all instances, all at once.
func call(ctx context.Context, clients []*http.Client, url string) (answered, refused int) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, c := range clients {
		for range each {
			all.Go(func() {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
				if err != nil {
					return
				}
				resp, err := c.Do(req)
				if err != nil {
					return // neither answered nor refused: the sum shows it
				}
				_ = resp.Body.Close()
				mu.Lock()
				defer mu.Unlock()
				if resp.StatusCode == http.StatusTooManyRequests {
					refused++
				} else {
					answered++
				}
			})
		}
	}
	all.Wait()
	return answered, refused
}
