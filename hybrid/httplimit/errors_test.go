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

// Another error is one, whether or not somebody still waits for the answer.
func TestErrorBesideAContextThatEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var seen error
	h := middleware(t, says(hybrid.Result{}, hybrid.ErrClosed), httplimit.WithOnError(
		func(w http.ResponseWriter, _ *http.Request, err error, _ http.Handler) {
			seen = err
			w.WriteHeader(http.StatusBadGateway)
		}))(mustNotRun(t))
	want(t, "status", serve(h, get(client).WithContext(ctx)).Code, http.StatusBadGateway)
	want(t, "error", seen, hybrid.ErrClosed)
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
