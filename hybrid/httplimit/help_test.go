package httplimit_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/hybrid/httplimit"
	"github.com/resilient-go/limiter/internal/redistest"
)

var (
	_ httplimit.WaitLimiter = (*hybrid.Limiter)(nil)
	_ httplimit.WaitLimiter = (*fake)(nil)
)

// A fake is a limiter that answers as the test wants and notes what it was asked.
type fake struct {
	answer func(r hybrid.Request) (hybrid.Result, error)
	// waiting is WaitN; nil admits at once.
	waiting func(ctx context.Context) (hybrid.Result, error)

	mu    sync.Mutex
	asked []hybrid.Request
}

func (f *fake) Take(_ context.Context, r hybrid.Request) (hybrid.Result, error) {
	f.note(r)
	return f.answer(r)
}

func (f *fake) WaitN(ctx context.Context, key string, n int) (hybrid.Result, error) {
	f.note(hybrid.Request{Key: key, N: n})
	if f.waiting == nil {
		return hybrid.Result{Allowed: true}, nil
	}
	return f.waiting(ctx)
}

func (f *fake) note(r hybrid.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, r)
}

// requests are what the fake was asked, in order.
func (f *fake) requests() []hybrid.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
}

// keys are the different keys that the fake was asked for.
func (f *fake) keys() []string {
	var keys []string
	for _, r := range f.requests() {
		if !slices.Contains(keys, r.Key) {
			keys = append(keys, r.Key)
		}
	}
	return keys
}

// says is a fake that always gives one answer.
func says(res hybrid.Result, err error) *fake {
	return &fake{answer: func(hybrid.Request) (hybrid.Result, error) { return res, err }}
}

// buckets is a fake with n tokens per key that never come back.
func buckets(n int) *fake {
	var mu sync.Mutex
	spent := map[string]int{}
	return &fake{answer: func(r hybrid.Request) (hybrid.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		res := hybrid.Result{Source: hybrid.SourceRedis, Limit: hybrid.PerHour(n)}
		if res.Allowed = n-spent[r.Key] >= max(r.N, 1); res.Allowed {
			spent[r.Key] += r.N
		} else {
			res.RetryAfter = time.Hour
		}
		res.Remaining = n - spent[r.Key]
		return res, nil
	}}
}

var (
	allowed = hybrid.Result{
		Allowed: true, Source: hybrid.SourceLease, Limit: hybrid.PerSecond(100), Remaining: 60,
		ResetAfter: 400 * time.Millisecond,
	}
	refused = hybrid.Result{
		Source: hybrid.SourceRedis, Limit: hybrid.PerSecond(100), RetryAfter: 10 * time.Millisecond, ResetAfter: time.Second,
	}
	degraded = hybrid.Result{
		Source: hybrid.SourceDegraded, Limit: hybrid.PerSecond(100), RetryAfter: 40 * time.Millisecond, ResetAfter: time.Second,
	}
)

// middleware makes one that must be valid.
func middleware(t testing.TB, lim httplimit.Limiter, options ...httplimit.Option) func(http.Handler) http.Handler {
	t.Helper()
	m, err := httplimit.New(lim, append([]httplimit.Option{httplimit.WithLogger(silent)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var silent = slog.New(slog.DiscardHandler)

// ok is a handler that answers 200.
var ok = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("served")) })

// A tape is a ResponseWriter that counts the writes.
type tape struct {
	*httptest.ResponseRecorder
	headers, writes int
}

func (t *tape) WriteHeader(status int) {
	t.headers++
	t.ResponseRecorder.WriteHeader(status)
}

func (t *tape) Write(p []byte) (int, error) {
	t.writes++
	return t.ResponseRecorder.Write(p)
}

// serve sends a request through a handler.
func serve(h http.Handler, r *http.Request) *tape {
	w := &tape{ResponseRecorder: httptest.NewRecorder()}
	h.ServeHTTP(w, r)
	return w
}

// get is a request from an address with headers, given in pairs.
func get(addr string, headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/path", nil)
	r.RemoteAddr = addr
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

const client = "203.0.113.7:4711"

// want fails the test unless got is what is wanted.
func want[T comparable](t testing.TB, what string, got, wanted T) {
	t.Helper()
	if got != wanted {
		t.Errorf("%s = %v, want %v", what, got, wanted)
	}
}

// wantList is want for lists.
func wantList[T comparable](t testing.TB, what string, got, wanted []T) {
	t.Helper()
	if !slices.Equal(got, wanted) {
		t.Errorf("%s = %v, want %v", what, got, wanted)
	}
}

// logged returns a logger and what it has logged so far.
func logged() (*slog.Logger, func() string) {
	var (
		mu  sync.Mutex
		buf bytes.Buffer
	)
	h := slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return buf.Write(p)
	}), nil)
	return slog.New(h), func() string {
		mu.Lock()
		defer mu.Unlock()
		return buf.String()
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// bubble runs f on fake time with a Redis of its own.
func bubble(t *testing.T, f func(t *testing.T, r *redistest.Mini)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, redistest.Bubble(t)) })
}

// start returns a real limiter that is closed with the test.
func start(t testing.TB, r *redistest.Mini, limit hybrid.Limit, options ...hybrid.Option) *hybrid.Limiter {
	t.Helper()
	rdb := r.Client(func(o *redis.Options) {
		addr, dialer, pool := o.Addr, o.Dialer, o.PoolSize
		*o = *hybrid.RedisOptions(addr).Simple()
		o.Addr, o.Dialer, o.PoolSize = addr, dialer, pool
	})
	lim, err := hybrid.New(rdb, limit, append([]hybrid.Option{hybrid.WithLogger(silent)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lim.Close() })
	return lim
}
