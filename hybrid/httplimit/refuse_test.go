package httplimit_test

import (
	"fmt"
	"net/http"
	"testing"

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
