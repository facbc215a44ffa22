package httplimit_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/hybrid/httplimit"
)

// newLimiter makes a limiter on a Redis for this example.
func newLimiter(limit hybrid.Limit) (lim *hybrid.Limiter, stop func()) {
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	// The defaults take a Redis that is slower than 50 ms for an outage, which says
	// little on a busy test machine.
	const patience = 5 * time.Second
	rdb := redis.NewUniversalClient(hybrid.RedisOptionsFor(patience, server.Addr()))
	lim, err = hybrid.New(rdb, limit, hybrid.WithRemoteTimeout(patience), hybrid.WithLeaseHorizon(patience),
		hybrid.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		log.Fatal(err)
	}
	return lim, func() {
		_ = lim.Close()
		_ = rdb.Close()
		server.Close()
	}
}

var hello = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "hello") })

// show sends a request and prints what comes back.
func show(h http.Handler, r *http.Request) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	fmt.Println(w.Code, w.Header().Get("Retry-After"), w.Header().Get("RateLimit"))
}

func ExampleNew() {
	lim, stop := newLimiter(hybrid.PerMinute(2))
	defer stop()

	limit, err := httplimit.New(lim) // by the client's address
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /hello", hello)
	server := limit(mux)

	for range 3 {
		show(server, httptest.NewRequest("GET", "/hello", nil))
	}
	// Output:
	// 200  "2/m";r=1;t=30
	// 200  "2/m";r=0;t=30
	// 429 30 "2/m";r=0;t=30
}

// Behind a load balancer the client's address is in a header.
func ExampleByIP() {
	key := httplimit.ByIP(httplimit.TrustProxies(netip.MustParsePrefix("10.0.0.0/8")))

	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "10.0.0.1:1234"
	r.Header.Set("X-Forwarded-For", "192.0.2.1, 203.0.113.7") // the first one is the client's word
	fmt.Println(key.Of(r))
	// Output: 203.0.113.7
}

// A limit for each route and user.
func ExampleByRoute() {
	user := func(r *http.Request) string {
		name, _, _ := r.BasicAuth() // checked further out
		return name
	}
	lim, stop := newLimiter(hybrid.PerHour(100))
	defer stop()
	limit, err := httplimit.New(lim,
		httplimit.WithKey(httplimit.ByRoute(), httplimit.ByFunc(user)),
		httplimit.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /items/{id}", limit(hello)) // around the handler: outside of the mux there is no route yet

	r := httptest.NewRequest("GET", "/items/7", nil)
	r.SetBasicAuth("ann", "secret")
	show(mux, r)
	show(mux, httptest.NewRequest("GET", "/items/7", nil)) // nobody
	// Output:
	// 200  "100/h";r=99;t=3564
	// 400
}

// Only failed logins count.
func ExampleWithCostAfter() {
	lim, stop := newLimiter(hybrid.PerHour(2))
	defer stop()
	limit, err := httplimit.New(lim, httplimit.WithCostAfter(func(resp httplimit.Response) int {
		if resp.Status == http.StatusUnauthorized {
			return 1
		}
		return 0
	}))
	if err != nil {
		log.Fatal(err)
	}
	login := limit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != "sesame" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	for _, password := range []string{"sesame", "sesame", "a", "b", "c"} {
		r := httptest.NewRequest("GET", "/", nil)
		r.SetBasicAuth("ann", password)
		show(login, r)
	}
	// Output:
	// 200  "2/h";r=2;t=3600
	// 200  "2/h";r=2;t=3600
	// 401  "2/h";r=2;t=3600
	// 401  "2/h";r=1;t=1800
	// 429 1800 "2/h";r=0;t=1800
}

// A megabyte per hour: a request reserves what a usual page has, and costs what it
// was.
func ExampleWithSettle() {
	lim, stop := newLimiter(hybrid.PerHour(1000)) // kilobytes
	defer stop()
	limit, err := httplimit.New(lim,
		httplimit.WithCost(func(*http.Request) int { return 400 }),
		httplimit.WithSettle(httplimit.PerBytes(1000)))
	if err != nil {
		log.Fatal(err)
	}
	pages := limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write(make([]byte, 550_000))
	}))
	for range 3 { // the second leaves a debt of 100
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		fmt.Println(w.Code)
	}
	// Output:
	// 200
	// 200
	// 429
}

// A limit per second and one per hour. Both are told.
func ExampleNew_nested() {
	second, stop := newLimiter(hybrid.PerSecond(10))
	defer stop()
	hour, stopHour := newLimiter(hybrid.PerHour(1000))
	defer stopHour()
	perSecond, err := httplimit.New(second)
	perHour, errHour := httplimit.New(hour)
	if err := errors.Join(err, errHour); err != nil {
		log.Fatal(err)
	}
	show(perHour(perSecond(hello)), httptest.NewRequest("GET", "/", nil))
	// Output: 200  "1000/h";r=999;t=3597, "10/s";r=9;t=1
}

func ExampleFromContext() {
	lim, stop := newLimiter(hybrid.PerHour(100))
	defer stop()
	limit, err := httplimit.New(lim)
	if err != nil {
		log.Fatal(err)
	}
	h := limit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		res, ok := httplimit.FromContext(r.Context())
		fmt.Println(ok, res.Remaining, "of", res.Limit)
	}))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	// Output: true 99 of 100/h
}

func ExampleWithOnLimited() {
	lim, stop := newLimiter(hybrid.PerHour(1))
	defer stop()
	limit, err := httplimit.New(lim, httplimit.WithOnLimited(func(w http.ResponseWriter, _ *http.Request, res hybrid.Result) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = fmt.Fprintf(w, `{"error":"slow down","limit":%q}`, res.Limit)
	}))
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		w := httptest.NewRecorder()
		limit(hello).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		fmt.Println(w.Code, w.Body)
	}
	// Output:
	// 200 hello
	//
	// 429 {"error":"slow down","limit":"1/h"}
}

// deny is a limiter for tests of a user, without a Redis.
type deny struct{}

func (deny) Take(context.Context, hybrid.Request) (hybrid.Result, error) {
	return hybrid.Result{Limit: hybrid.PerMinute(5), RetryAfter: 12 * time.Second}, nil
}

// Handlers are tested without a Redis.
func ExampleLimiter() {
	limit, err := httplimit.New(deny{})
	if err != nil {
		log.Fatal(err)
	}
	show(limit(hello), httptest.NewRequest("GET", "/", nil))
	// Output: 429 12 "5/m";r=0;t=12
}

// All instances together call a partner at most twice a minute.
func ExampleNewTransport() {
	partner := httptest.NewServer(hello)
	defer partner.Close()
	lim, stop := newLimiter(hybrid.PerMinute(2))
	defer stop()

	transport, err := httplimit.NewTransport(lim, nil,
		httplimit.WithTransportKey(func(*http.Request) string { return "partner" }),
		httplimit.WithFailFast()) // without this it waits
	if err != nil {
		log.Fatal(err)
	}
	hc := &http.Client{Transport: transport}
	defer hc.CloseIdleConnections()
	for range 3 {
		resp, err := hc.Get(partner.URL)
		var limited *httplimit.LimitedError
		if errors.As(err, &limited) {
			fmt.Println(limited.Key, "in", limited.RetryAfter.Round(time.Second))
			continue
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(resp.Status)
		_ = resp.Body.Close()
	}
	// Output:
	// 200 OK
	// 200 OK
	// partner in 30s
}
