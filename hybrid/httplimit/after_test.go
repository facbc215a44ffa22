package httplimit_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/hybrid/httplimit"
)

// failures costs a token for each 401.
func failures(resp httplimit.Response) int {
	if resp.Status == http.StatusUnauthorized {
		return 1
	}
	return 0
}

// login answers 401 to those who do not know the password.
var login = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Password") != "sesame" {
		w.WriteHeader(http.StatusUnauthorized)
	}
})

func TestOnlyFailuresAreCharged(t *testing.T) {
	lim := buckets(3)
	h := middleware(t, lim, httplimit.WithCostAfter(failures))(login)
	for i, c := range []struct {
		password string
		status   int
	}{
		{"sesame", 200},
		{"a", 401},
		{"sesame", 200},
		{"b", 401},
		{"sesame", 200},
		{"c", 401},
		{"d", 429},
		{"sesame", 429}, // used up: not even the right one
	} {
		if got := serve(h, get(client, "Password", c.password)).Code; got != c.status {
			t.Errorf("status %d is %d, want %d", i, got, c.status)
		}
	}
	looks, charges := 0, 0
	for _, r := range lim.requests() {
		want(t, "key", r.Key, "203.0.113.7")
		if r.N == 0 {
			looks++
		} else {
			charges += r.N
		}
	}
	want(t, "looks", looks, 8)
	want(t, "charges", charges, 3)
}

func TestResponseThatIsCharged(t *testing.T) {
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		status  int
		bytes   int64
	}{
		{"nothing", func(http.ResponseWriter, *http.Request) {}, 200, 0},
		{"body", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("12345")) }, 200, 5},
		{"status and body", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte("1"))
			_, _ = w.Write([]byte("2"))
		}, 404, 2},
		{"two statuses", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			w.WriteHeader(http.StatusOK)
		}, 404, 0},
		{"hints before the status", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusForbidden)
		}, 403, 0},
		{"flush", func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			w.WriteHeader(http.StatusForbidden) // too late
		}, 200, 0},
		{"panic", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 500, 0},
		{"panic after the answer", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			panic(http.ErrAbortHandler)
		}, 403, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			lim := buckets(10)
			var seen httplimit.Response
			var inner *http.Request
			h := middleware(t, lim, httplimit.WithCostAfter(func(resp httplimit.Response) int {
				seen = resp
				return 2
			}))(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				inner = r
				c.handler(w, r)
			}))
			func() {
				defer func() {
					if p := recover(); p != nil && p != http.ErrAbortHandler {
						t.Errorf("panic: %v", p)
					}
				}()
				serve(h, get(client))
			}()
			want(t, "status", seen.Status, c.status)
			want(t, "bytes", seen.Bytes, c.bytes)
			want(t, "request", seen.Request, inner)
			wantList(t, "requests", lim.requests(), []hybrid.Request{{Key: "203.0.113.7"}, {Key: "203.0.113.7", N: 2}})
		})
	}
}

// A client that leaves before the answer does not save the charge.
func TestChargeOutlivesTheClient(t *testing.T) {
	charged := false
	lim := &ctxLimiter{take: func(ctx context.Context, r hybrid.Request) (hybrid.Result, error) {
		charged = charged || r.N == 1 && ctx.Err() == nil
		return allowed, ctx.Err()
	}}
	ctx, leave := context.WithCancel(t.Context())
	h := middleware(t, lim, httplimit.WithCostAfter(failures))(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leave()
		login(w, r)
	}))
	serve(h, get(client).WithContext(ctx))
	want(t, "charged", charged, true)
}

// A ctxLimiter sees the context.
type ctxLimiter struct {
	take func(ctx context.Context, r hybrid.Request) (hybrid.Result, error)
}

func (l *ctxLimiter) Take(ctx context.Context, r hybrid.Request) (hybrid.Result, error) {
	return l.take(ctx, r)
}

// A response that costs more than there is takes what there is.
func TestChargeAboveWhatRemains(t *testing.T) {
	for _, c := range []struct {
		name     string
		cost     int
		statuses []int
	}{
		{"all at once", 10, []int{200, 429}},
		{"more than the burst", 1000, []int{200, 429}},
		{"in part", 7, []int{200, 200, 429}},
		{"nothing", 0, []int{200, 200, 200, 200}},
		{"a gift", -5, []int{200, 200, 200, 200}},
	} {
		real := buckets(10)
		lim := &fake{answer: func(r hybrid.Request) (hybrid.Result, error) {
			if r.N > 10 {
				return hybrid.Result{}, hybrid.ErrExceedsBurst
			}
			return real.answer(r)
		}}
		h := middleware(t, lim, httplimit.WithCostAfter(func(httplimit.Response) int { return c.cost }))(ok)
		for i, status := range c.statuses {
			if got := serve(h, get(client)).Code; got != status {
				t.Errorf("%s: status %d is %d, want %d", c.name, i, got, status)
			}
		}
	}
}

func TestChargeThatFailsIsLogged(t *testing.T) {
	log, text := logged()
	lim := &fake{answer: func(r hybrid.Request) (hybrid.Result, error) {
		if r.N > 0 {
			return hybrid.Result{}, hybrid.ErrClosed
		}
		return allowed, nil
	}}
	h := middleware(t, lim, httplimit.WithLogger(log), httplimit.WithCostAfter(failures))(login)
	for range 3 {
		want(t, "status", serve(h, get(client)).Code, http.StatusUnauthorized)
	}
	want(t, "lines", strings.Count(text(), "could not be charged"), 1)
}

func TestLookThatFailsIsAnError(t *testing.T) {
	h := middleware(t, says(hybrid.Result{}, errors.New("down")), httplimit.WithCostAfter(failures))(mustNotRun(t))
	want(t, "status", serve(h, get(client)).Code, http.StatusServiceUnavailable)
}

// The limit may be exceeded by those who are under way at the same time, and by no
// more.
func TestConcurrentLooksOvershootByThoseUnderWay(t *testing.T) {
	const limit, together = 3, 8
	lim := buckets(limit)
	var inside sync.WaitGroup
	inside.Add(together)
	h := middleware(t, lim, httplimit.WithCostAfter(failures))(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inside.Done()
		inside.Wait()
		login(w, r)
	}))
	var all sync.WaitGroup
	codes := make([]int, together)
	for i := range together {
		all.Go(func() { codes[i] = serve(h, get(client)).Code })
	}
	all.Wait()
	for _, code := range codes {
		want(t, "status of one of those together", code, http.StatusUnauthorized)
	}
	want(t, "status of the next", serve(h, get(client)).Code, http.StatusTooManyRequests)
}

// The server's writer keeps its abilities, however a handler asks for them.
func TestWrappedWriterKeepsItsAbilities(t *testing.T) {
	type abilities struct{ flush, hijack bool }
	base := httptest.NewRecorder()
	plain := struct{ http.ResponseWriter }{base}
	for name, c := range map[string]struct {
		w    http.ResponseWriter
		want abilities
	}{
		"none":   {plain, abilities{}},
		"flush":  {base, abilities{flush: true}},
		"hijack": {struct{ hijackable }{hijackable{ResponseWriter: plain}}, abilities{hijack: true}},
		"both": {struct {
			hijackable
			http.Flusher
		}{hijackable{ResponseWriter: plain}, base}, abilities{flush: true, hijack: true}},
	} {
		h := middleware(t, buckets(1), httplimit.WithCostAfter(failures))(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, flush := w.(http.Flusher)
			_, hijack := w.(http.Hijacker)
			want(t, name, abilities{flush, hijack}, c.want)
			if p, found := w.(http.Pusher); found {
				want(t, name+": Push", p.Push("/x", nil), error(http.ErrNotSupported))
			}
			err := http.NewResponseController(w).Flush()
			want(t, name+": Flush of a controller works", err == nil, c.want.flush)
		}))
		h.ServeHTTP(c.w, get(client))
	}
}
