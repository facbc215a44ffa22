package grpclimit_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/resilient-go/limiter/contrib/grpclimit"
	"github.com/resilient-go/limiter/hybrid"
)

// answer is an error of the remote side with RetryInfo.
func answer(t testing.TB, code codes.Code, delays ...*durationpb.Duration) error {
	t.Helper()
	st := status.New(code, "no")
	for _, d := range delays {
		with, err := st.WithDetails(&errdetails.RetryInfo{RetryDelay: d})
		if err != nil {
			t.Fatal(err)
		}
		st = with
	}
	return st.Err()
}

func after(d time.Duration) *durationpb.Duration { return durationpb.New(d) }

// byMethod is the key of clients without a connection, which have no target.
func byMethod(t testing.TB, lim grpclimit.WaitLimiter, options ...grpclimit.ClientOption) *grpclimit.Client {
	t.Helper()
	return client(t, lim, append([]grpclimit.ClientOption{
		grpclimit.WithClientKey(grpclimit.ByMethod()), grpclimit.WithPauseKey(grpclimit.ByMethod()),
	}, options...)...)
}

func TestPausesThatAreAskedFor(t *testing.T) {
	for name, test := range map[string]struct {
		answer error
		want   time.Duration
	}{
		"exhausted":         {answer(t, codes.ResourceExhausted, after(3*time.Second)), 3 * time.Second},
		"unavailable":       {answer(t, codes.Unavailable, after(3*time.Second)), 3 * time.Second},
		"wrapped":           {fmt.Errorf("x: %w", answer(t, codes.Unavailable, after(time.Second))), time.Second},
		"the longest":       {answer(t, codes.Unavailable, after(time.Second), after(2*time.Second), after(time.Second)), 2 * time.Second},
		"no info":           {answer(t, codes.ResourceExhausted), 0},
		"another code":      {answer(t, codes.Internal, after(time.Second)), 0},
		"no status":         {errors.New("no"), 0},
		"success":           {nil, 0},
		"nothing":           {answer(t, codes.Unavailable, after(0)), 0},
		"negative":          {answer(t, codes.Unavailable, after(-time.Second)), 0},
		"invalid":           {answer(t, codes.Unavailable, &durationpb.Duration{Seconds: 1, Nanos: -1}), 0},
		"no delay":          {answer(t, codes.Unavailable, nil), 0},
		"for ever":          {answer(t, codes.Unavailable, &durationpb.Duration{Seconds: math.MaxInt64}), 0},
		"for 10,000 years":  {answer(t, codes.Unavailable, &durationpb.Duration{Seconds: 315_576_000_000}), time.Minute},
		"for a day":         {answer(t, codes.Unavailable, after(24*time.Hour)), time.Minute},
		"of another Client": {&grpclimit.LimitedError{RetryAfter: time.Second}, 0},
		"... wrapped":       {fmt.Errorf("x: %w", &grpclimit.LimitedError{RetryAfter: time.Second, Remote: true}), 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lim := says(allowed, nil)
				c := byMethod(t, lim, grpclimit.WithMaxPause(time.Minute))
				_, err := send(t.Context(), c, method, test.answer)
				want(t, "error", err, test.answer) // as it is
				begun := time.Now()
				sent, err := send(t.Context(), c, method, nil)
				want(t, "sent", sent, true)
				want(t, "error", err, nil)
				want(t, "after", time.Since(begun), test.want)
				want(t, "tokens", len(lim.requests()), 2) // none is taken to wait
			})
		})
	}
}

// TestWhomAPauseHoldsUp: by default the calls of the same method and target.
func TestWhomAPauseHoldsUp(t *testing.T) {
	for name, test := range map[string]struct {
		options     []grpclimit.ClientOption
		same, other time.Duration
	}{
		"default":     {nil, time.Second, 0},
		"all methods": {[]grpclimit.ClientOption{grpclimit.WithPauseKey(grpclimit.Fixed("all"))}, time.Second, time.Second},
		"by a message": {[]grpclimit.ClientOption{grpclimit.WithPauseKey(grpclimit.ByFunc(func(_ context.Context, c grpclimit.Call) string {
			return fmt.Sprint(c.Message)
		}))}, time.Second, time.Second}, // it sees none
		"no key": {[]grpclimit.ClientOption{grpclimit.WithPauseKey(grpclimit.ByMetadata("x-account"))}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := byMethod(t, says(allowed, nil), test.options...)
				for method, wanted := range map[string]time.Duration{"/a.B/C": test.same, "/a.B/D": test.other} {
					_, _ = send(t.Context(), c, "/a.B/C", answer(t, codes.ResourceExhausted, after(time.Second)))
					begun := time.Now()
					if _, err := send(t.Context(), c, method, nil); err != nil {
						t.Fatal(err)
					}
					want(t, method, time.Since(begun), wanted)
					time.Sleep(time.Minute)
				}
			})
		})
	}
}

func TestWithoutPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := &echo{say: func(context.Context, string) (string, error) {
			return "", answer(t, codes.ResourceExhausted, after(time.Second))
		}}
		for wanted, options := range map[time.Duration][]grpclimit.ClientOption{0: {grpclimit.WithoutPauses()}, time.Second: nil} {
			conn := serve(t, refuse, nil, client(t, says(allowed, nil), options...))
			begun := time.Now()
			for range 2 {
				_, err := say(t.Context(), conn, "hello")
				want(t, "code", status.Code(err), codes.ResourceExhausted)
			}
			want(t, "after", time.Since(begun), wanted)
		}
	})
}

// TestPausesAreWithinTheContext: what would be too late fails at once, and what is
// canceled then.
func TestPausesAreWithinTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := says(allowed, nil)
		c := byMethod(t, lim)
		_, _ = send(t.Context(), c, method, answer(t, codes.ResourceExhausted, after(time.Second)))
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 999*time.Millisecond)
		defer cancel()
		sent, err := send(ctx, c, method, nil)
		want(t, "sent", sent, false)
		want(t, "after", time.Since(begun), 0)
		want(t, "is ErrWouldExceedDeadline", errors.Is(err, hybrid.ErrWouldExceedDeadline), true)
		wantStatus(t, err, codes.DeadlineExceeded, "context deadline exceeded", 0, "")
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(500*time.Millisecond, cancel)
		_, err = send(ctx, c, method, nil)
		wantStatus(t, err, codes.Canceled, "context canceled", 0, "")
		want(t, "after", time.Since(begun), 500*time.Millisecond)
		_, err = send(ctx, c, method, nil)
		wantStatus(t, err, codes.Canceled, "context canceled", 0, "")
		want(t, "tokens", len(lim.requests()), 1)
	})
}

func TestPausesWhenItFailsFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := says(allowed, nil)
		c := byMethod(t, lim, grpclimit.WithFailFast(), grpclimit.WithClientCost(func(context.Context, grpclimit.Call) int { return 0 }))
		_, _ = send(t.Context(), c, method, answer(t, codes.ResourceExhausted, after(time.Second)))
		time.Sleep(400 * time.Millisecond)
		sent, err := send(t.Context(), c, method, nil)
		want(t, "sent", sent, false)
		wantStatus(t, err, codes.ResourceExhausted, paused, 600*time.Millisecond, "")
		var limited *grpclimit.LimitedError
		if !errors.As(err, &limited) || *limited != (grpclimit.LimitedError{Key: method, RetryAfter: 600 * time.Millisecond, Remote: true}) {
			t.Errorf("%#v", err)
		}
		time.Sleep(600 * time.Millisecond)
		sent, err = send(t.Context(), c, method, nil)
		want(t, "sent", sent, true)
		want(t, "error", err, nil)
		want(t, "tokens", len(lim.requests()), 0) // at no cost
	})
}

// TestPauseThatBeginsWhileACallWaits for its token: the token is dropped and asked
// for again, else all who waited would be sent at once when the pause ends.
func TestPauseThatBeginsWhileACallWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := says(allowed, nil)
		lim.waiting = func(context.Context) (hybrid.Result, error) {
			time.Sleep(100 * time.Millisecond)
			return allowed, nil
		}
		c := byMethod(t, lim)
		begun := time.Now()
		var calls sync.WaitGroup
		calls.Go(func() {
			_, _ = send(t.Context(), c, method, answer(t, codes.ResourceExhausted, after(time.Second))) // ends at 1.1 s
		})
		time.Sleep(50 * time.Millisecond)
		for range 3 {
			calls.Go(func() {
				sent, err := send(t.Context(), c, method, nil)
				want(t, "sent", sent, true)
				want(t, "error", err, nil)
				want(t, "after", time.Since(begun), 1200*time.Millisecond)
			})
		}
		calls.Wait()
		want(t, "tokens", len(lim.requests()), 1+3+3)
	})
}

// TestPausesGetLongerOnly: answers overtake each other.
func TestPausesGetLongerOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := byMethod(t, says(allowed, nil))
		begun := time.Now()
		slowly := func(delay, pause time.Duration) {
			_ = c.Unary(t.Context(), method, nil, nil, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
				time.Sleep(delay)
				return answer(t, codes.Unavailable, after(pause))
			})
		}
		var calls sync.WaitGroup
		calls.Go(func() { slowly(100*time.Millisecond, time.Second) }) // until 1.1 s
		calls.Go(func() { slowly(200*time.Millisecond, 3*time.Second) })
		calls.Go(func() { slowly(300*time.Millisecond, time.Second) })
		calls.Wait()
		if _, err := send(t.Context(), c, method, nil); err != nil {
			t.Fatal(err)
		}
		want(t, "sent after", time.Since(begun), 3200*time.Millisecond)
	})
}

// TestPausesAreBounded: the one that ends first makes room, or one that is over.
func TestPausesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := byMethod(t, says(allowed, nil), grpclimit.WithMaxPauses(2), grpclimit.WithFailFast())
		pause := func(method string, d time.Duration) {
			_, _ = send(t.Context(), c, method, answer(t, codes.Unavailable, after(d)))
		}
		left := func(method string) time.Duration {
			var limited *grpclimit.LimitedError
			if _, err := send(t.Context(), c, method, nil); errors.As(err, &limited) {
				return limited.RetryAfter
			}
			return 0
		}
		pause("/a", 3*time.Second)
		pause("/b", 2*time.Second)
		pause("/c", 4*time.Second)
		want(t, "a", left("/a"), 3*time.Second)
		want(t, "b", left("/b"), 0)
		want(t, "c", left("/c"), 4*time.Second)
		time.Sleep(3 * time.Second)
		pause("/d", time.Second/2)
		want(t, "c", left("/c"), time.Second)
		want(t, "d", left("/d"), time.Second/2)
	})
}
