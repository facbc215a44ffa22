// Gin: a middleware of net/http, put in the place of one of gin.
package main

import (
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
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

// middleware makes a middleware of gin from one of net/http. It is not for
// httplimit.WithCostAfter, which has to see what the handler writes.
func middleware(limit func(http.Handler) http.Handler) gin.HandlerFunc {
	return func(c *gin.Context) {
		passed := false
		limit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			passed = true
			c.Request = r // it knows the decision
			c.Next()
		})).ServeHTTP(c.Writer, c.Request)
		if !passed {
			c.Abort()
		}
	}
}

func newHandler(rdb redis.UniversalClient) (http.Handler, *hybrid.Limiter, error) {
	lim, limit, err := newLimiter(rdb)
	if err != nil {
		return nil, nil, err
	}
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.Use(middleware(limit))
	r.GET("/", func(c *gin.Context) {
		res, _ := httplimit.FromContext(c.Request.Context())
		c.String(http.StatusOK, "hello, %d left\n", res.Remaining)
	})
	return r, lim, nil
}
