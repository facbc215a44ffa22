package httplimit_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/hybrid/httplimit"
	"github.com/resilient-go/limiter/internal/redistest"
)

// The requests of two instances leave at the rate that they share.
func TestTransportWaitsForTheSharedQuota(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		limit := hybrid.PerSecond(10).WithBurst(1)
		far := answers(status(200))
		begun := time.Now()
		var all sync.WaitGroup
		for range 2 {
			tr := transport(t, start(t, r, limit), far)
			for range 5 {
				all.Go(func() {
					if _, err := trip(t, t.Context(), tr, url); err != nil {
						t.Error(err)
					}
				})
			}
		}
		all.Wait()
		at := far.at(begun)
		want(t, "requests", len(at), 10)
		for i, d := range at {
			if slowest := time.Duration(i)*100*time.Millisecond - time.Millisecond; d < slowest {
				t.Errorf("request %d was sent after %v, want at least %v", i, d, slowest)
			}
		}
		if last := at[9]; last > 1500*time.Millisecond {
			t.Errorf("the last request was sent after %v", last)
		}
	})
}

func TestTransportKeys(t *testing.T) {
	lim := &fake{}
	tr := transport(t, lim, answers(status(200)))
	for _, url := range []string{
		"https://API.example/x", "https://api.example:443/y", "http://api.example:80", "https://api.example.",
		"https://api.example:8443", "http://api.example:443", "http://[2001:DB8::1]/", "http://[2001:db8::1]:81/",
	} {
		if _, err := trip(t, t.Context(), tr, url); err != nil {
			t.Fatal(err)
		}
	}
	wantList(t, "keys", lim.keys(), []string{"api.example", "api.example:8443", "api.example:443", "2001:db8::1", "[2001:db8::1]:81"})

	lim = &fake{}
	tr = transport(t, lim, answers(status(200)), httplimit.WithTransportKey(func(r *http.Request) string { return r.Header.Get("Account") }))
	req := request(t, t.Context(), http.MethodGet, url, nil)
	req.Header.Set("Account", "a1")
	if _, err := tr.RoundTrip(req); err != nil {
		t.Fatal(err)
	}
	wantList(t, "keys", lim.keys(), []string{"a1"})
}

func TestTransportThatFailsFast(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		far := answers(status(200))
		tr := transport(t, start(t, r, hybrid.PerMinute(2)), far, httplimit.WithFailFast())
		hc := &http.Client{Transport: tr}
		for range 2 {
			resp, err := hc.Get(url)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
		}
		_, err := hc.Get(url)
		var limited *httplimit.LimitedError
		if !errors.As(err, &limited) {
			t.Fatalf("the error is %v", err)
		}
		want(t, "error", *limited, httplimit.LimitedError{Key: "api.example", RetryAfter: 30 * time.Second})
		want(t, "text", limited.Error(), "httplimit: api.example: the quota is used up; try again in 30s")
		want(t, "requests", len(far.at(time.Now())), 2)
	})
}

// As the contract of a RoundTripper asks, the body of a request is closed, once it
// is given up too, and the request stays as it was.
func TestTransportClosesBodies(t *testing.T) {
	down := errors.New("connection refused")
	for name, c := range map[string]struct {
		lim     *fake
		far     *remote
		options []httplimit.TransportOption
		err     error
		closed  int32
	}{
		"sent":      {&fake{}, answers(status(200)), nil, nil, 1},
		"not heard": {&fake{}, &remote{answer: func(int, *http.Request) (*http.Response, error) { return nil, down }}, nil, down, 1},
		"limiter closed": {&fake{waiting: func(context.Context) (hybrid.Result, error) {
			return hybrid.Result{}, hybrid.ErrClosed
		}}, answers(status(200)), nil, hybrid.ErrClosed, 1},
		"refused": {says(hybrid.Result{RetryAfter: time.Second}, nil), answers(status(200)), []httplimit.TransportOption{httplimit.WithFailFast()}, &httplimit.LimitedError{}, 1},
		"refused by a limiter that does not wait": {&fake{waiting: func(context.Context) (hybrid.Result, error) {
			return hybrid.Result{RetryAfter: time.Second}, nil
		}}, answers(status(200)), nil, &httplimit.LimitedError{}, 1},
		"no key": {&fake{}, answers(status(200)), []httplimit.TransportOption{
			httplimit.WithTransportKey(func(*http.Request) string { return "" }),
		}, httplimit.ErrNoKey, 1},
		"not retried": {&fake{}, answers(status(429), status(200)), []httplimit.TransportOption{httplimit.WithRetries(1)}, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := &body{Reader: strings.NewReader("payload")}
			req := request(t, t.Context(), http.MethodPost, url, b)
			before := fmt.Sprintf("%p %v %v %v", req.Body, req.Header, req.URL, req.ContentLength)
			resp, err := transport(t, c.lim, c.far, c.options...).RoundTrip(req)
			var limited *httplimit.LimitedError
			if !errors.Is(err, c.err) && (!errors.As(c.err, &limited) || !errors.As(err, &limited)) {
				t.Errorf("the error is %v, want %v", err, c.err)
			}
			if (resp == nil) == (err == nil) {
				t.Errorf("response %v, error %v", resp, err)
			}
			want(t, "closed", b.closed.Load(), c.closed)
			want(t, "request", fmt.Sprintf("%p %v %v %v", req.Body, req.Header, req.URL, req.ContentLength), before)
		})
	}
}

func TestIdleConnectionsAreClosedBelow(t *testing.T) {
	base := &idle{}
	(&http.Client{Transport: transport(t, &fake{}, base)}).CloseIdleConnections()
	want(t, "calls", base.calls, 1)
	(&http.Client{Transport: transport(t, &fake{}, answers(status(200)))}).CloseIdleConnections()
}

type idle struct {
	http.RoundTripper
	calls int
}

func (i *idle) CloseIdleConnections() { i.calls++ }
