// Chi: a middleware of net/http is one of chi.
package main

import (
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/hybrid/httplimit"
)

func main() {
	addr := flag.String("redis", "127.0.0.1:6379", "address of a Redis server")
	listen := flag.String("addr", "127.0.0.1:8080", "where to serve")
	flag.Parse()
	log.Fatal(run(*addr, *listen))
}

func run(addr, listen string) error {
	ln, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("%w; choose another address with -addr", err)
	}
	defer func() { _ = ln.Close() }()
	rdb := redis.NewUniversalClient(hybrid.RedisOptions(addr))
	handler, lim, err := newHandler(rdb)
	if err != nil {
		return err
	}
	defer func() { _ = lim.Close() }()
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	log.Println("serving http://" + ln.Addr().String())
	return server.Serve(ln)
}

// newLimiter is the limit of an address, and the middleware that keeps it.
func newLimiter(rdb redis.UniversalClient) (*hybrid.Limiter, func(http.Handler) http.Handler, error) {
	lim, err := hybrid.New(rdb, hybrid.PerMinute(5), hybrid.WithName("web"), hybrid.WithExpectedInstances(1))
	if err != nil {
		return nil, nil, err
	}
	limit, err := httplimit.New(lim) // by address; httplimit.WithKey sets another key
	return lim, limit, err
}

func newHandler(rdb redis.UniversalClient) (http.Handler, *hybrid.Limiter, error) {
	lim, limit, err := newLimiter(rdb)
	if err != nil {
		return nil, nil, err
	}
	r := chi.NewRouter()
	r.Use(limit)
	r.Get("/", func(w http.ResponseWriter, r *http.Request) {
		res, _ := httplimit.FromContext(r.Context())
		_, _ = fmt.Fprintf(w, "hello, %d left\n", res.Remaining)
	})
	return r, lim, nil
}
