package grpclimit_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/resilient-go/limiter/contrib/grpclimit"
	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

func TestMain(m *testing.M) {
	redistest.SilenceClientLog()
	os.Exit(m.Run())
}

var (
	_ grpclimit.WaitLimiter = (*hybrid.Limiter)(nil)
	_ grpclimit.WaitLimiter = (*fake)(nil)
	_ net.Addr              = addr("")
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

// A cost is how many tokens of which key were asked for.
type cost struct {
	key string
	n   int
}

// costs are the keys and tokens of the requests, in order.
func (f *fake) costs() (all []cost) {
	for _, r := range f.requests() {
		all = append(all, cost{r.Key, r.N})
	}
	return all
}

// says is a fake that always gives one answer.
func says(res hybrid.Result, err error) *fake {
	return &fake{answer: func(hybrid.Request) (hybrid.Result, error) { return res, err }}
}

// first is a fake that admits n requests.
func first(n int) *fake {
	var mu sync.Mutex
	return &fake{answer: func(hybrid.Request) (hybrid.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		if n--; n >= 0 {
			return allowed, nil
		}
		return refused, nil
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

var silent = slog.New(slog.DiscardHandler)

// server makes one that must be valid.
func server(t testing.TB, lim grpclimit.Limiter, options ...grpclimit.Option) *grpclimit.Server {
	t.Helper()
	s, err := grpclimit.NewServer(lim, append([]grpclimit.Option{grpclimit.WithLogger(silent)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// client makes one that must be valid.
func client(t testing.TB, lim grpclimit.WaitLimiter, options ...grpclimit.ClientOption) *grpclimit.Client {
	t.Helper()
	c, err := grpclimit.NewClient(lim, options...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const method = "/test.Echo/Say"

// call sends a unary call through a server's interceptor. It reports whether the
// handler was called.
func call(ctx context.Context, s *grpclimit.Server, req any) (handled bool, err error) {
	_, err = s.Unary(ctx, req, &grpc.UnaryServerInfo{FullMethod: method}, func(context.Context, any) (any, error) {
		handled = true
		return nil, nil
	})
	return handled, err
}

// send sends a unary call through a client's interceptor to a remote side that
// answers with an error, or nil. It reports whether the call got there. The answer
// is the call's message as well, so that calls with different ones differ.
func send(ctx context.Context, c *grpclimit.Client, method string, answer error) (sent bool, err error) {
	err = c.Unary(ctx, method, answer, nil, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
		sent = true
		return answer
	})
	return sent, err
}

// addr is an address by its text.
type addr string

func (addr) Network() string  { return "test" }
func (a addr) String() string { return string(a) }

// want fails the test unless got is what is wanted.
func want[T comparable](t testing.TB, what string, got, wanted T) {
	t.Helper()
	if got != wanted {
		t.Errorf("%s = %v, want %v", what, got, wanted)
	}
}

// wantStatus fails the test unless an error has a status with these parts: the
// RetryInfo as a duration, and the subject of the QuotaFailure.
func wantStatus(t testing.TB, err error, code codes.Code, text string, retry time.Duration, subject string) {
	t.Helper()
	st, ok := status.FromError(err)
	if !ok {
		t.Errorf("%v has no status", err)
	}
	want(t, "code", st.Code(), code)
	want(t, "text", st.Message(), text)
	gotRetry, gotSubject := time.Duration(0), ""
	for _, d := range st.Details() {
		switch d := d.(type) {
		case *errdetails.RetryInfo:
			if gotRetry = d.GetRetryDelay().AsDuration(); gotRetry <= 0 {
				t.Errorf("the RetryInfo says %v", gotRetry)
			}
		case *errdetails.QuotaFailure:
			want(t, "violations", len(d.GetViolations()), 1)
			gotSubject = d.GetViolations()[0].GetSubject()
			want(t, "description", d.GetViolations()[0].GetDescription(), text)
		default:
			t.Errorf("a detail is a %T", d)
		}
	}
	want(t, "retry", gotRetry, retry)
	want(t, "subject", gotSubject, subject)
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
