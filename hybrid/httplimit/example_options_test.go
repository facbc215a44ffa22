package httplimit_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/hybrid/httplimit"
)

// wrapped is httplimit.New for examples that are about its options.
func wrapped(lim httplimit.Limiter, options ...httplimit.Option) http.Handler {
	limit, err := httplimit.New(lim, append(options, httplimit.WithLogger(slog.New(slog.DiscardHandler)))...)
	if err != nil {
		log.Fatal(err)
	}
	return limit(hello)
}

// ask sends a request and returns the answer.
func ask(h http.Handler, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
	return w
}

// An error code and a text of one's own.
func ExampleWithStatus() {
	w := ask(wrapped(deny{},
		httplimit.WithStatus(http.StatusServiceUnavailable),
		httplimit.WithBody("application/json", []byte(`{"code":4290,"message":"busy"}`))), "/")
	fmt.Println(w.Code, w.Header().Get("Retry-After"), w.Body)
	// Output: 503 12 {"code":4290,"message":"busy"}
}

// Problem details as in RFC 9457.
func ExampleWithProblemJSON() {
	w := ask(wrapped(deny{}, httplimit.WithProblemJSON(), httplimit.WithPolicyName("login")), "/")
	fmt.Println(w.Code, w.Header().Get("Content-Type"))
	fmt.Println(strings.Contains(w.Body.String(), "quota-exceeded"), strings.Contains(w.Body.String(), `"login"`))
	// Output:
	// 429 application/problem+json
	// true true
}

// A search costs ten, and what is free is not counted.
func ExampleWithCost() {
	lim, stop := newLimiter(hybrid.PerHour(100))
	defer stop()
	h := wrapped(lim, httplimit.WithCost(func(r *http.Request) int {
		switch r.URL.Path {
		case "/search":
			return 10
		case "/healthz":
			return 0
		}
		return 1
	}))
	for _, path := range []string{"/items", "/search", "/healthz"} {
		fmt.Println(path, ask(h, path).Header().Get("RateLimit"))
	}
	// Output:
	// /items "100/h";r=99;t=3564
	// /search "100/h";r=89;t=3204
	// /healthz
}

// down refuses as a limiter with FailClosed does while Redis is down.
type down struct{}

func (down) Take(context.Context, hybrid.Request) (hybrid.Result, error) {
	return hybrid.Result{Limit: hybrid.PerMinute(5), Source: hybrid.SourceDegraded, RetryAfter: 1}, nil
}

// A refusal because Redis is down, told apart from one because of the limit.
func ExampleWithDegradedStatus() {
	degraded := httplimit.WithDegradedStatus(http.StatusServiceUnavailable)
	fmt.Println(ask(wrapped(down{}, degraded), "/").Code, ask(wrapped(deny{}, degraded), "/").Code)
	// Output: 503 429
}

// A request without a key: refused by default.
func ExampleWithEmptyKeyPassed() {
	key := httplimit.WithKey(httplimit.ByHeader("X-Tenant"))
	fmt.Println(ask(wrapped(deny{}, key), "/").Code)
	fmt.Println(ask(wrapped(deny{}, key, httplimit.WithEmptyKeyPassed()), "/").Code)
	// Output:
	// 400
	// 200
}

// The fields of old, besides or instead of RateLimit.
func ExampleWithLegacyFields() {
	h := wrapped(deny{}, httplimit.WithLegacyFields(httplimit.ResetSeconds), httplimit.WithoutFields())
	header := ask(h, "/").Header()
	fmt.Println(header.Get("X-RateLimit-Limit"), header.Get("X-RateLimit-Remaining"), header.Get("Retry-After"))
	fmt.Printf("%q\n", header.Get("RateLimit"))
	// Output:
	// 5 0 12
	// ""
}

// Clients can tell buckets apart without learning whose they are.
func ExampleWithPartitionKey() {
	h := wrapped(deny{}, httplimit.WithPartitionKey([]byte("sixteen bytes at least")))
	fmt.Println(strings.Contains(ask(h, "/").Header().Get("RateLimit"), ";pk=:"))
	// Output: true
}

// What cannot be decided: here a request that costs more than the burst.
func ExampleWithOnError() {
	lim, stop := newLimiter(hybrid.PerHour(10))
	defer stop()
	h := wrapped(lim,
		httplimit.WithCost(func(*http.Request) int { return 11 }),
		httplimit.WithOnError(func(w http.ResponseWriter, _ *http.Request, err error, _ http.Handler) {
			if errors.Is(err, hybrid.ErrExceedsBurst) {
				http.Error(w, "too much at once", http.StatusRequestEntityTooLarge)
				return
			}
			http.Error(w, "later", http.StatusServiceUnavailable)
		}))
	w := ask(h, "/")
	fmt.Print(w.Code, " ", w.Body)
	// Output: 413 too much at once
}
