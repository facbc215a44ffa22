package httplimit_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/hybrid/httplimit"
)

func TestAdmittedRequestReachesTheHandlerUntouched(t *testing.T) {
	var writer http.ResponseWriter
	var seen hybrid.Result
	h := middleware(t, says(allowed, nil))(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		writer = w
		seen, _ = httplimit.FromContext(r.Context())
		w.WriteHeader(http.StatusTeapot)
	}))
	w := serve(h, get(client))
	want(t, "status", w.Code, http.StatusTeapot)
	want(t, "writes of headers", w.headers, 1)
	want(t, "result in the context", seen, allowed)
	want(t, "Retry-After", w.Header().Get("Retry-After"), "")
	if writer != http.ResponseWriter(w) {
		t.Errorf("the handler got a %T, want the writer of the server", writer)
	}
}

func TestWithoutLimiterNoResultInContext(t *testing.T) {
	if res, found := httplimit.FromContext(t.Context()); found {
		t.Errorf("FromContext = %v in a context without a decision", res)
	}
}

func TestRefusals(t *testing.T) {
	const quota, reduced = "https://iana.org/assignments/http-problem-types#quota-exceeded",
		"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
	problem := httplimit.WithProblemJSON()
	for _, c := range []struct {
		name        string
		res         hybrid.Result
		options     []httplimit.Option
		status      int
		contentType string
		body        string
	}{
		{"default", refused, nil, 429, "text/plain; charset=utf-8", "Too Many Requests\n"},
		{"default while degraded", degraded, nil, 429, "text/plain; charset=utf-8", "Too Many Requests\n"},
		{
			"status", refused,
			[]httplimit.Option{httplimit.WithStatus(503)},
			503, "text/plain; charset=utf-8", "Service Unavailable\n",
		},
		{
			"a status without a text", refused,
			[]httplimit.Option{httplimit.WithStatus(599)},
			599, "text/plain; charset=utf-8", "Status 599\n",
		},
		{
			"status also while degraded", degraded,
			[]httplimit.Option{httplimit.WithStatus(420)},
			420, "text/plain; charset=utf-8", "Status 420\n",
		},
		{
			"degraded status", degraded,
			[]httplimit.Option{httplimit.WithDegradedStatus(503)},
			503, "text/plain; charset=utf-8", "Service Unavailable\n",
		},
		{
			"degraded status while well", refused,
			[]httplimit.Option{httplimit.WithDegradedStatus(503)},
			429, "text/plain; charset=utf-8", "Too Many Requests\n",
		},
		{
			"body", refused,
			[]httplimit.Option{httplimit.WithBody("text/html", []byte("<p>slow down"))},
			429, "text/html", "<p>slow down",
		},
		{
			"empty body", refused,
			[]httplimit.Option{httplimit.WithBody("text/html", nil)},
			429, "text/html", "",
		},
		{
			"problem", refused,
			[]httplimit.Option{problem},
			429, "application/problem+json",
			`{"type":"` + quota + `","title":"The quota is used up","status":429,"violated-policies":["100/s"]}`,
		},
		{
			"problem of a named policy", refused,
			[]httplimit.Option{problem, httplimit.WithPolicyName(`a "b"`)},
			429, "application/problem+json",
			`{"type":"` + quota + `","title":"The quota is used up","status":429,"violated-policies":["a \"b\""]}`,
		},
		{
			"problem while degraded", degraded,
			[]httplimit.Option{problem, httplimit.WithDegradedStatus(503)},
			503, "application/problem+json",
			`{"type":"` + reduced + `","title":"The capacity is reduced for a while","status":503,"violated-policies":["100/s"]}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := middleware(t, says(c.res, nil), c.options...)(mustNotRun(t))
			w := serve(h, get(client))
			want(t, "status", w.Code, c.status)
			want(t, "Content-Type", w.Header().Get("Content-Type"), c.contentType)
			want(t, "body", w.Body.String(), c.body)
			want(t, "Retry-After", w.Header().Get("Retry-After"), "1")
			want(t, "Cache-Control", w.Header().Get("Cache-Control"), "no-store")
			want(t, "writes of headers", w.headers, 1)
			want(t, "writes of bodies", w.writes, 1)
		})
	}
}

// mustNotRun is the handler behind a refusal.
func mustNotRun(t *testing.T) http.Handler {
	return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") })
}

func TestRefusalReplacesTheLengthOfAnotherBody(t *testing.T) {
	h := middleware(t, says(refused, nil))(ok)
	w := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000000")
		h.ServeHTTP(w, r)
	}), get(client))
	want(t, "Content-Length", w.Header().Get("Content-Length"), "")
}

func TestOwnHandlerOfRefusals(t *testing.T) {
	h := middleware(t, says(refused, nil), httplimit.WithOnLimited(
		func(w http.ResponseWriter, r *http.Request, res hybrid.Result) {
			found, _ := httplimit.FromContext(r.Context())
			want(t, "result", res, refused)
			want(t, "result in the context", found, refused)
			want(t, "Retry-After", w.Header().Get("Retry-After"), "1")
			http.Redirect(w, r, "/busy", http.StatusSeeOther)
		}))(mustNotRun(t))
	w := serve(h, get(client))
	want(t, "status", w.Code, http.StatusSeeOther)
	want(t, "writes of headers", w.headers, 1)
}

// A handler of refusals may send the request through the same middleware again:
// nothing is locked while it runs.
func TestHandlersMayReenter(t *testing.T) {
	depth := 0
	var h http.Handler
	h = middleware(t, says(refused, nil), httplimit.WithOnLimited(
		func(w http.ResponseWriter, r *http.Request, _ hybrid.Result) {
			if depth++; depth < 3 {
				h.ServeHTTP(w, r)
				return
			}
			w.WriteHeader(http.StatusTooManyRequests)
		}))(ok)
	want(t, "status", serve(h, get(client)).Code, http.StatusTooManyRequests)
	want(t, "depth", depth, 3)
}

// The errors of back ends name hosts and ports. None of it reaches a client, and
// none lets a request pass.
func TestErrorsAreNeutral(t *testing.T) {
	secret := "dial tcp 10.1.2.3:6379: connect: connection refused"
	for _, c := range []struct {
		err    error
		status int
		text   string
	}{
		{errors.New(secret), 503, "Service Unavailable"},
		{fmt.Errorf("%s: %w", secret, hybrid.ErrClosed), 503, "Service Unavailable"},
		{fmt.Errorf("%s: %w", secret, hybrid.ErrInvalidN), 503, "Service Unavailable"},
		{fmt.Errorf("%s: %w", secret, context.DeadlineExceeded), 503, "Service Unavailable"}, // not the request's own
		{fmt.Errorf("%s: %w", secret, hybrid.ErrExceedsBurst), 413, "Request Entity Too Large"},
	} {
		for _, options := range [][]httplimit.Option{
			nil,
			{httplimit.WithProblemJSON()},
			{httplimit.WithBody("text/html", []byte("limited"))},
			{httplimit.WithOnLimited(func(http.ResponseWriter, *http.Request, hybrid.Result) {
				t.Error("an error is not a refusal")
			})},
		} {
			w := serve(middleware(t, says(hybrid.Result{}, c.err), options...)(mustNotRun(t)), get(client))
			want(t, "status", w.Code, c.status)
			want(t, "writes of headers", w.headers, 1)
			want(t, "writes of bodies", w.writes, 1)
			want(t, "Retry-After", w.Header().Get("Retry-After"), "")
			all := fmt.Sprint(w.Header(), w.Body)
			if !strings.Contains(all, c.text) || strings.Contains(all, "6379") || strings.Contains(all, "hybrid") {
				t.Errorf("%v: the answer is %s", c.err, all)
			}
		}
	}
}

func TestOwnHandlerOfErrors(t *testing.T) {
	for _, pass := range []bool{false, true} {
		h := middleware(t, says(hybrid.Result{}, hybrid.ErrClosed), httplimit.WithOnError(
			func(w http.ResponseWriter, r *http.Request, err error, next http.Handler) {
				if !errors.Is(err, hybrid.ErrClosed) {
					t.Errorf("the error is %v", err)
				}
				if pass {
					next.ServeHTTP(w, r)
					return
				}
				w.WriteHeader(http.StatusBadGateway)
			}))(ok)
		w := serve(h, get(client))
		want(t, "status", w.Code, map[bool]int{false: 502, true: 200}[pass])
		want(t, "writes of headers and bodies", w.headers+w.writes, 1)
	}
}

// A client that has left gets nothing, and it is nobody's fault. The status keeps
// it from looking like success where somebody does read it.
func TestRequestWhoseContextEnded(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancelLate := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancelLate()
	for _, ctx := range []context.Context{canceled, late} {
		log, text := logged()
		h := middleware(t, says(hybrid.Result{}, fmt.Errorf("asking: %w", ctx.Err())),
			httplimit.WithLogger(log),
			httplimit.WithOnError(func(http.ResponseWriter, *http.Request, error, http.Handler) {
				t.Error("the end of a request's context is no error of the limiter")
			}))(mustNotRun(t))
		w := serve(h, get(client).WithContext(ctx))
		want(t, "status", w.Code, http.StatusServiceUnavailable)
		want(t, "writes of headers", w.headers, 1)
		want(t, "writes of bodies", w.writes, 0)
		want(t, "log", text(), "")
	}
}

func TestFaultsAreLoggedOnceAMinute(t *testing.T) {
	noKey := httplimit.WithKey(httplimit.ByHeader("X-User"))
	for _, c := range []struct {
		name    string
		lim     httplimit.Limiter
		options []httplimit.Option
		text    string
		status  int
	}{
		{"no key, refused", says(allowed, nil), []httplimit.Option{noKey}, "without a key is refused", 400},
		{"no key, passed", says(allowed, nil), []httplimit.Option{noKey, httplimit.WithEmptyKeyPassed()}, "passes without a limit", 200},
		{"error", says(hybrid.Result{}, hybrid.ErrClosed), nil, "hybrid: the limiter is closed", 503},
		{"too much", says(hybrid.Result{}, hybrid.ErrExceedsBurst), nil, "costs more than the burst", 413},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log, text := logged()
				h := middleware(t, c.lim, append(c.options, httplimit.WithLogger(log))...)(ok)
				lines := func() int { return strings.Count(text(), c.text) }
				for range 100 {
					want(t, "status", serve(h, get(client)).Code, c.status)
				}
				want(t, "lines at once", lines(), 1)
				time.Sleep(time.Minute - 1)
				serve(h, get(client))
				want(t, "lines within a minute", lines(), 1)
				time.Sleep(time.Nanosecond)
				serve(h, get(client))
				want(t, "lines after a minute", lines(), 2)
			})
		})
	}
}

func TestRequestWithoutKeyIsNotDecided(t *testing.T) {
	for _, pass := range []bool{false, true} {
		lim := says(allowed, nil)
		options := []httplimit.Option{httplimit.WithKey(httplimit.Fixed("api"), httplimit.ByHeader("X-User"))}
		if pass {
			options = append(options, httplimit.WithEmptyKeyPassed())
		}
		w := serve(middleware(t, lim, options...)(ok), get(client))
		want(t, "status", w.Code, map[bool]int{false: 400, true: 200}[pass])
		want(t, "RateLimit", w.Header().Get("RateLimit"), "")
		want(t, "requests to the limiter", len(lim.requests()), 0)
	}
}

func TestCost(t *testing.T) {
	lim := buckets(10)
	h := middleware(t, lim, httplimit.WithCost(func(r *http.Request) int {
		n := 0
		_, _ = fmt.Sscan(r.Header.Get("Cost"), &n)
		return n
	}))(ok)
	for _, c := range []struct {
		cost   string
		status int
	}{{"3", 200}, {"0", 200}, {"7", 200}, {"1", 429}, {"0", 200}} {
		w := serve(h, get(client, "Cost", c.cost))
		want(t, "status at cost "+c.cost, w.Code, c.status)
		want(t, "has RateLimit at cost "+c.cost, w.Header().Get("RateLimit") != "", c.cost != "0")
	}
	wantList(t, "requests", lim.requests(), []hybrid.Request{
		{Key: "203.0.113.7", N: 3}, {Key: "203.0.113.7", N: 7}, {Key: "203.0.113.7", N: 1},
	})
}
