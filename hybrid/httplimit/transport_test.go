package httplimit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/hybrid/httplimit"
	"github.com/resilient-go/limiter/internal/redistest"
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

// A body counts how often it was closed.
type body struct {
	io.Reader
	closed atomic.Int32
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

func TestTransportHonoursThePauseOfTheRemoteSide(t *testing.T) {
	for name, c := range map[string]struct {
		first func() *http.Response
		pause time.Duration
	}{
		"429, seconds":                 {status(429, "Retry-After", "7"), 7 * time.Second},
		"503, seconds":                 {status(503, "Retry-After", "7"), 7 * time.Second},
		"429, a date":                  {status(429, "Retry-After", "Sat, 01 Jan 2000 00:00:09 GMT"), 9 * time.Second},
		"a used-up quota":              {status(200, "RateLimit", `"a";r=5;t=60, "b";r=0;t=4`), 4 * time.Second},
		"429, nothing said":            {status(429), 0},
		"200 with Retry-After":         {status(200, "Retry-After", "7"), 0},
		"asked for more than can be":   {status(429, "Retry-After", "31536000"), httplimit.DefaultMaxPause},
		"Retry-After before RateLimit": {status(429, "Retry-After", "2", "RateLimit", `"a";r=0;t=60`), 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				far := answers(c.first, status(200))
				tr := transport(t, &fake{}, far)
				begun := time.Now()
				if _, err := trip(t, t.Context(), tr, url); err != nil {
					t.Fatal(err)
				}
				var all sync.WaitGroup
				for range 3 {
					all.Go(func() {
						if _, err := trip(t, t.Context(), tr, url); err != nil {
							t.Error(err)
						}
					})
				}
				if code, err := trip(t, t.Context(), tr, "https://other.example"); code != 200 {
					t.Errorf("another host: %d, %v", code, err)
				}
				want(t, "time for another host", time.Since(begun), 0)
				all.Wait()
				want(t, "time", time.Since(begun), c.pause)
				want(t, "keys in mind", tr.Paused(), 0)
			})
		})
	}
}

// The longest pause counts, in whatever order the answers come.
func TestPausesAreNotMadeShorter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var under sync.WaitGroup
		under.Add(2)
		far := &remote{answer: func(n int, _ *http.Request) (*http.Response, error) {
			if n < 2 { // both are sent before either is answered
				under.Done()
				under.Wait()
			}
			return []func() *http.Response{status(429, "Retry-After", "10"), status(429, "Retry-After", "1"), status(200)}[n](), nil
		}}
		tr := transport(t, &fake{}, far)
		begun := time.Now()
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				if _, err := trip(t, t.Context(), tr, url); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if _, err := trip(t, t.Context(), tr, url); err != nil {
			t.Error(err)
		}
		want(t, "time", time.Since(begun), 10*time.Second)
	})
}

// Who waited for the limiter while a pause began waits for the pause as well, and
// then asks for a permit again: they must not leave all at once.
func TestPauseThatBeginsWhileOthersWait(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(1).WithBurst(1))
		far := answers(status(429, "Retry-After", "60"), status(200))
		tr := transport(t, lim, far)
		begun := time.Now()
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if _, err := trip(t, t.Context(), tr, url); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		at := far.at(begun)
		want(t, "requests", len(at), 5)
		want(t, "the first", at[0], 0)
		for i := 1; i < len(at); i++ {
			earliest := time.Minute + time.Duration(i-1)*time.Second - 10*time.Millisecond
			if at[i] < earliest {
				t.Errorf("request %d was sent after %v, want at least %v", i, at[i], earliest)
			}
		}
	})
}

func TestPauseAndFailFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := says(hybrid.Result{Allowed: true}, nil)
		tr := transport(t, lim, answers(status(429, "Retry-After", "7"), status(200)), httplimit.WithFailFast())
		if code, err := trip(t, t.Context(), tr, url); code != 429 {
			t.Fatal(code, err)
		}
		time.Sleep(2 * time.Second)
		_, err := trip(t, t.Context(), tr, url)
		var limited *httplimit.LimitedError
		if !errors.As(err, &limited) {
			t.Fatalf("the error is %v", err)
		}
		want(t, "error", *limited, httplimit.LimitedError{Key: "api.example", RetryAfter: 5 * time.Second, Remote: true})
		want(t, "text", limited.Error(), "httplimit: api.example: the remote side asked for a pause; try again in 5s")
		want(t, "asked of the limiter", len(lim.requests()), 1)
		time.Sleep(5 * time.Second)
		if code, err := trip(t, t.Context(), tr, url); code != 200 {
			t.Error(code, err)
		}
	})
}

// A pause that is longer than a request has time is told at once; one that is
// broken off ends with the context's error.
func TestPauseAndContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := answers(status(429, "Retry-After", "60"), status(200))
		tr := transport(t, &fake{}, far)
		if _, err := trip(t, t.Context(), tr, url); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		short, cancel := context.WithTimeout(t.Context(), time.Minute-1)
		defer cancel()
		_, err := trip(t, short, tr, url)
		if !errors.Is(err, hybrid.ErrWouldExceedDeadline) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
		want(t, "time", time.Since(begun), 0)

		leaving, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, leave)
		_, err = trip(t, leaving, tr, url)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the error is %v", err)
		}
		want(t, "time", time.Since(begun), time.Second)

		_, err = trip(t, leaving, tr, url)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the error is %v", err)
		}

		enough, cancelEnough := context.WithTimeout(t.Context(), time.Minute)
		defer cancelEnough()
		if code, err := trip(t, enough, tr, url); code != 200 {
			t.Error(code, err)
		}
		want(t, "requests", len(far.at(begun)), 2)
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

// A remote side cannot make the transport remember ever more.
func TestPausesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 16
		far := &remote{answer: func(n int, _ *http.Request) (*http.Response, error) {
			return response(429, "Retry-After", fmt.Sprint(100+n)), nil
		}}
		tr := transport(t, says(hybrid.Result{Allowed: true}, nil), far, httplimit.WithMaxPauses(most), httplimit.WithFailFast())
		host := func(i int) string { return fmt.Sprintf("https://h%d.example", i) }
		for i := range 10 * most {
			if code, err := trip(t, t.Context(), tr, host(i)); code != 429 {
				t.Fatal(code, err)
			}
			if n := tr.Paused(); n > most {
				t.Fatalf("%d pauses are kept, want at most %d", n, most)
			}
		}
		// Those that end last are kept.
		for i := 9 * most; i < 10*most; i++ {
			if _, err := trip(t, t.Context(), tr, host(i)); err == nil {
				t.Errorf("the pause of %s is forgotten", host(i))
			}
		}
		want(t, "kept", tr.Paused(), most)
		// And all that are over go when room is needed.
		time.Sleep(time.Hour)
		if code, err := trip(t, t.Context(), tr, "https://new.example"); code != 429 {
			t.Fatal(code, err)
		}
		want(t, "kept after an hour", tr.Paused(), 1)
	})
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
