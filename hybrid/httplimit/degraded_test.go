package httplimit_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/hybrid/httplimit"
	"github.com/resilient-go/limiter/internal/redistest"
)

// passes counts how many of n requests are served.
func passes(t *testing.T, h http.Handler, n int, remote string) (passed int, last *tape) {
	t.Helper()
	for range n {
		last = serve(h, get(remote))
		switch last.Code {
		case http.StatusOK:
			passed++
		case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		default:
			t.Fatalf("status %d", last.Code)
		}
	}
	return passed, last
}

// The eleventh request of an address is refused, another address is untouched, and
// after Retry-After it goes on.
func TestRealLimiter(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		h := middleware(t, start(t, r, hybrid.PerSecond(10)))(ok)
		passed, last := passes(t, h, 11, client)
		want(t, "passed", passed, 10)
		want(t, "status", last.Code, 429)
		want(t, "Retry-After", last.Header().Get("Retry-After"), "1")
		want(t, "RateLimit-Policy", last.Header().Get("RateLimit-Policy"), `"10/s";q=10;w=1`)
		want(t, "RateLimit", last.Header().Get("RateLimit"), `"10/s";r=0;t=1`)
		other, _ := passes(t, h, 1, "203.0.113.8:1")
		want(t, "passed of another", other, 1)
		time.Sleep(time.Second)
		passed, _ = passes(t, h, 11, client)
		want(t, "passed after a second", passed, 10)
	})
}

// Keys with limits of their own, and limits that are no bucket.
func TestRealLimiterWithLimitsByKey(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(1), hybrid.WithLimitByKey(func(key string) hybrid.Limit {
			return map[string]hybrid.Limit{
				"203.0.113.1": hybrid.PerHour(3), "203.0.113.2": hybrid.Unlimited, "203.0.113.3": hybrid.Blocked,
			}[key]
		}))
		h := middleware(t, lim, httplimit.WithProblemJSON())(ok)
		for _, c := range []struct {
			remote             string
			passed             int
			fields, retryAfter string
		}{
			{"203.0.113.1:1", 3, `"3/h";r=0;t=1200`, "1200"},
			{"203.0.113.2:1", 5, "", ""},
			{"203.0.113.3:1", 0, "", "60"},
		} {
			passed, last := passes(t, h, 5, c.remote)
			want(t, "passed of "+c.remote, passed, c.passed)
			want(t, "RateLimit of "+c.remote, last.Header().Get("RateLimit"), c.fields)
			want(t, "Retry-After of "+c.remote, last.Header().Get("Retry-After"), c.retryAfter)
		}
	})
}

func TestRealLimiterThatIsClosed(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(10))
		h := middleware(t, lim)(mustNotRun(t))
		if err := lim.Close(); err != nil {
			t.Fatal(err)
		}
		want(t, "status", serve(h, get(client)).Code, http.StatusServiceUnavailable)
	})
}

func TestRealLimiterAndACostAboveTheBurst(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		h := middleware(t, start(t, r, hybrid.PerSecond(10)), httplimit.WithCost(func(*http.Request) int { return 11 }))(mustNotRun(t))
		want(t, "status", serve(h, get(client)).Code, http.StatusRequestEntityTooLarge)
	})
}

// In an outage the answers are limited, and neutral, and of the same keys: what two
// middlewares shared they go on sharing.
func TestDegradedMode(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerMinute(20), hybrid.WithExpectedInstances(4))
		options := []httplimit.Option{httplimit.WithProblemJSON(), httplimit.WithDegradedStatus(503)}
		first, second := middleware(t, lim, options...)(ok), middleware(t, lim, options...)(ok)
		r.Kill()

		// A quarter of the limit per key, whichever middleware is asked.
		a, _ := passes(t, first, 3, client)
		b, last := passes(t, second, 10, client)
		want(t, "passed", a+b, 5)
		want(t, "status", last.Code, http.StatusServiceUnavailable)
		want(t, "Content-Type", last.Header().Get("Content-Type"), "application/problem+json")
		if !strings.Contains(last.Body.String(), "#temporary-reduced-capacity") {
			t.Errorf("the body is %s", last.Body)
		}
		want(t, "Retry-After", last.Header().Get("Retry-After"), "12") // 5 per minute
		want(t, "RateLimit", last.Header().Get("RateLimit"), `"20/m";r=0;t=12`)
		other, _ := passes(t, first, 10, "203.0.113.8:1")
		want(t, "passed of another key", other, 5)

		for _, text := range append(last.Header().Values("RateLimit"), last.Body.String()) {
			if strings.Contains(text, "redis") || strings.Contains(text, "dial") || strings.Contains(text, r.Addr()) {
				t.Errorf("the answer tells of Redis: %s", text)
			}
		}
	})
}

// The limit by response holds in an outage too.
func TestDegradedLimitByResponse(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerMinute(20), hybrid.WithExpectedInstances(4))
		h := middleware(t, lim, httplimit.WithCostAfter(failures))(login)
		r.Kill()
		for i := range 8 {
			status := 401
			if i >= 5 {
				status = 429
			}
			want(t, "status", serve(h, get(client)).Code, status)
		}
	})
}

// The limit by response on a Redis that is well, and what it charges after that.
func TestRealLimitByResponse(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerMinute(6))
		h := middleware(t, lim, httplimit.WithCostAfter(func(resp httplimit.Response) int { return 4 * failures(resp) }))(login)
		for i, c := range []struct {
			password string
			status   int
		}{{"sesame", 200}, {"x", 401}, {"sesame", 200}, {"x", 401}, {"sesame", 429}} {
			if got := serve(h, get(client, "Password", c.password)).Code; got != c.status {
				t.Errorf("status %d is %d, want %d", i, got, c.status)
			}
		}
		time.Sleep(10 * time.Second)
		want(t, "status after a tenth of a minute", serve(h, get(client, "Password", "sesame")).Code, 200)
	})
}
