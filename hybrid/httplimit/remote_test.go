package httplimit_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid/httplimit"
)

// A remote is the other side of a transport.
type remote struct {
	answer func(n int, req *http.Request) (*http.Response, error) // n counts from 0

	mu     sync.Mutex
	sent   []time.Time
	bodies []string
}

func (r *remote) RoundTrip(req *http.Request) (*http.Response, error) {
	body := ""
	if req.Body != nil {
		b, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		body = string(b)
		if err := req.Body.Close(); err != nil {
			return nil, err
		}
	}
	r.mu.Lock()
	n := len(r.sent)
	r.sent = append(r.sent, time.Now())
	r.bodies = append(r.bodies, body)
	r.mu.Unlock()
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	return r.answer(n, req)
}

// at is when the requests were sent, seen from an instant.
func (r *remote) at(begun time.Time) []time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	var at []time.Duration
	for _, t := range r.sent {
		at = append(at, t.Sub(begun))
	}
	return at
}

// response is an answer with headers, given in pairs.
func response(status int, headers ...string) *http.Response {
	resp := &http.Response{StatusCode: status, Header: http.Header{}, Body: &body{Reader: strings.NewReader("the body")}}
	for i := 0; i+1 < len(headers); i += 2 {
		resp.Header.Add(headers[i], headers[i+1])
	}
	return resp
}

// answers gives the answers in their order, the last one again and again.
func answers(list ...func() *http.Response) *remote {
	return &remote{answer: func(n int, _ *http.Request) (*http.Response, error) {
		return list[min(n, len(list)-1)](), nil
	}}
}

func status(code int, headers ...string) func() *http.Response {
	return func() *http.Response { return response(code, headers...) }
}

// A body counts how often it was closed, and cannot be read afterwards.
type body struct {
	io.Reader
	closed atomic.Int32
}

func (b *body) Read(p []byte) (int, error) {
	if b.closed.Load() > 0 {
		return 0, errors.New("read after close")
	}
	return b.Reader.Read(p)
}

func (b *body) Close() error {
	b.closed.Add(1)
	return nil
}

// transport makes one that must be valid.
func transport(t testing.TB, lim httplimit.WaitLimiter, base http.RoundTripper, options ...httplimit.TransportOption) *httplimit.Transport {
	t.Helper()
	tr, err := httplimit.NewTransport(lim, base, options...)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// request to a URL.
func request(t testing.TB, ctx context.Context, method, url string, b io.Reader) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, url, b)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// trip sends a GET and returns the status, 0 for an error.
func trip(t testing.TB, ctx context.Context, tr http.RoundTripper, url string) (int, error) {
	t.Helper()
	resp, err := tr.RoundTrip(request(t, ctx, http.MethodGet, url, nil))
	if err != nil {
		return 0, err
	}
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
	return resp.StatusCode, nil
}

const url = "https://api.example/v1"
