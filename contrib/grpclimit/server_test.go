package grpclimit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/resilient-go/limiter/contrib/grpclimit"
	"github.com/resilient-go/limiter/hybrid"
)

const (
	usedUp  = "the quota is used up"
	reduced = "the capacity is reduced for a while"
	tooMuch = "the call costs more than its quota ever allows"
	noKey   = "the call lacks what its quota is counted by"
	unable  = "the call's quota cannot be checked now"
)

func TestRefusals(t *testing.T) {
	forever := hybrid.Result{Source: hybrid.SourceRule, Limit: hybrid.Blocked}
	for name, test := range map[string]struct {
		res     hybrid.Result
		options []grpclimit.Option
		code    codes.Code
		text    string
		retry   time.Duration
		subject string
	}{
		"default":              {refused, nil, codes.ResourceExhausted, usedUp, 10 * time.Millisecond, "100/s"},
		"degraded":             {degraded, nil, codes.ResourceExhausted, reduced, 40 * time.Millisecond, "100/s"},
		"waiting does no good": {forever, nil, codes.ResourceExhausted, usedUp, 0, "blocked"},
		"a code": {
			refused,
			[]grpclimit.Option{grpclimit.WithCode(codes.Unavailable)},
			codes.Unavailable, usedUp, 10 * time.Millisecond, "100/s",
		},
		"a code, degraded": {
			degraded,
			[]grpclimit.Option{grpclimit.WithCode(codes.Unavailable)},
			codes.Unavailable, reduced, 40 * time.Millisecond, "100/s",
		},
		"a degraded code": {
			degraded,
			[]grpclimit.Option{grpclimit.WithDegradedCode(codes.Unavailable)},
			codes.Unavailable, reduced, 40 * time.Millisecond, "100/s",
		},
		"a degraded code, not degraded": {
			refused,
			[]grpclimit.Option{grpclimit.WithDegradedCode(codes.Unavailable)},
			codes.ResourceExhausted, usedUp, 10 * time.Millisecond, "100/s",
		},
		"a name": {
			refused,
			[]grpclimit.Option{grpclimit.WithPolicyName("free")},
			codes.ResourceExhausted, usedUp, 10 * time.Millisecond, "free",
		},
		"the key": {
			refused,
			[]grpclimit.Option{grpclimit.WithKeyInDetails()},
			codes.ResourceExhausted, usedUp, 10 * time.Millisecond, "user",
		},
		"a key that is no UTF-8": {
			refused,
			[]grpclimit.Option{grpclimit.WithKeyInDetails(), grpclimit.WithKey(grpclimit.Fixed("a\xffb"))},
			codes.ResourceExhausted, usedUp, 10 * time.Millisecond, "a\uFFFDb",
		},
	} {
		t.Run(name, func(t *testing.T) {
			options := append([]grpclimit.Option{grpclimit.WithKey(grpclimit.Fixed("user"))}, test.options...)
			handled, err := call(t.Context(), server(t, says(test.res, nil), options...), nil)
			want(t, "handled", handled, false)
			wantStatus(t, err, test.code, test.text, test.retry, test.subject)
			if told := strings.Contains(status.Convert(err).Proto().String(), "user"); told != (name == "the key") {
				t.Errorf("the key is told: %v", told)
			}
		})
	}
}

// TestErrorsAreNeutral: a client learns nothing of what stands behind the limiter.
func TestErrorsAreNeutral(t *testing.T) {
	inner := errors.New("dial tcp 10.1.2.3:6379: connection refused")
	for name, test := range map[string]struct {
		err  error
		code codes.Code
		text string
		log  string
	}{
		"unknown":           {inner, codes.Unavailable, unable, "10.1.2.3"},
		"closed":            {hybrid.ErrClosed, codes.Unavailable, unable, "closed"},
		"a negative cost":   {hybrid.ErrInvalidN, codes.Unavailable, unable, "negative"},
		"above the burst":   {fmt.Errorf("%w: %w", hybrid.ErrExceedsBurst, inner), codes.ResourceExhausted, tooMuch, "burst"},
		"another's context": {context.Canceled, codes.Unavailable, unable, "canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			log, text := logged()
			s := server(t, says(hybrid.Result{}, test.err), grpclimit.WithLogger(log))
			for range 3 {
				handled, err := call(t.Context(), s, nil)
				want(t, "handled", handled, false)
				wantStatus(t, err, test.code, test.text, 0, "")
				if strings.Contains(err.Error(), "10.1.2.3") {
					t.Errorf("an address is in %v", err)
				}
			}
			want(t, "lines", strings.Count(text(), "\n"), 1)
			if line := text(); !strings.Contains(line, test.log) || !strings.Contains(line, "level=WARN") || !strings.Contains(line, "method="+method) {
				t.Errorf("logged: %s", line)
			}
		})
	}
}

func TestEndedContexts(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	for ctx, code := range map[context.Context]codes.Code{canceled: codes.Canceled, late: codes.DeadlineExceeded} {
		log, text := logged()
		onError := grpclimit.WithOnError(func(_ context.Context, _ grpclimit.Call, err error) error { return err })
		for _, options := range [][]grpclimit.Option{{}, {onError}} {
			s := server(t, says(hybrid.Result{}, fmt.Errorf("limiter: %w", ctx.Err())), append(options, grpclimit.WithLogger(log))...)
			handled, err := call(ctx, s, nil)
			want(t, "handled", handled, false)
			want(t, "code", status.Code(err), code)
		}
		want(t, "logged", text(), "")
		// A limiter that fails otherwise does so although the context has ended.
		_, err := call(ctx, server(t, says(hybrid.Result{}, hybrid.ErrClosed)), nil)
		want(t, "code when closed", status.Code(err), codes.Unavailable)
	}
}

func TestEmptyKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for passed, options := range map[bool][]grpclimit.Option{false: nil, true: {grpclimit.WithEmptyKeyPassed()}} {
			log, text := logged()
			lim := says(refused, nil)
			options := append(options, grpclimit.WithKey(grpclimit.ByMetadata("x-user")), grpclimit.WithLogger(log))
			s := server(t, lim, options...)
			for i := range 6 {
				handled, err := call(t.Context(), s, nil)
				want(t, "handled", handled, passed)
				if passed {
					want(t, "error", err, nil)
				} else {
					wantStatus(t, err, codes.InvalidArgument, noKey, 0, "")
				}
				want(t, "lines", strings.Count(text(), "\n"), 1+i/3)
				switch i {
				case 1:
					time.Sleep(time.Minute - 1)
				case 2:
					time.Sleep(time.Nanosecond)
				}
			}
			want(t, "asked", len(lim.requests()), 0)
			if !strings.Contains(text(), "without a key") || !strings.Contains(text(), "level=WARN") {
				t.Errorf("logged: %s", text())
			}
		}
	})
}

func TestCosts(t *testing.T) {
	lim := says(allowed, nil)
	s := server(t, lim, grpclimit.WithKey(grpclimit.Join(grpclimit.Fixed("all"), grpclimit.ByFunc(func(_ context.Context, c grpclimit.Call) string {
		if c.Message == 0 {
			return "" // what costs nothing needs no key
		}
		return "k"
	}))), grpclimit.WithCost(func(_ context.Context, c grpclimit.Call) int {
		want(t, "method", c.Method, method)
		return c.Message.(int)
	}))
	for _, n := range []int{3, 0, -1} {
		if handled, err := call(t.Context(), s, n); !handled || err != nil {
			t.Errorf("cost %d: %v %v", n, handled, err)
		}
	}
	want(t, "asked", fmt.Sprint(lim.costs()), "[{all|k 3} {all|k -1}]")
}

func TestOnLimited(t *testing.T) {
	mine := errors.New("mine")
	for _, answer := range []error{mine, nil} {
		s := server(t, says(refused, nil), grpclimit.WithOnLimited(func(_ context.Context, c grpclimit.Call, res hybrid.Result) error {
			want(t, "method", c.Method, method)
			want(t, "result", res, refused)
			return answer
		}))
		handled, err := call(t.Context(), s, nil)
		want(t, "error", err, answer)
		want(t, "handled", handled, answer == nil)
	}
}

func TestOnError(t *testing.T) {
	mine := errors.New("mine")
	for _, answer := range []error{mine, nil} {
		for _, key := range []grpclimit.Key{grpclimit.Fixed("k"), grpclimit.ByMetadata("x-user")} {
			var told error
			s := server(t, says(hybrid.Result{}, hybrid.ErrClosed), grpclimit.WithKey(key),
				grpclimit.WithOnError(func(_ context.Context, _ grpclimit.Call, err error) error {
					told = err
					return answer
				}))
			handled, err := call(t.Context(), s, nil)
			want(t, "error", err, answer)
			want(t, "handled", handled, answer == nil)
			if !errors.Is(told, hybrid.ErrClosed) && !errors.Is(told, grpclimit.ErrNoKey) {
				t.Errorf("told %v", told)
			}
		}
	}
}

func TestHandlersSeeTheDecision(t *testing.T) {
	var seen []hybrid.Result
	e := &echo{say: func(ctx context.Context, text string) (string, error) {
		res, ok := grpclimit.FromContext(ctx)
		want(t, "there", ok, text == "costs")
		seen = append(seen, res)
		return "", nil
	}}
	conn := serve(t, e, server(t, says(allowed, nil), grpclimit.WithCost(func(_ context.Context, c grpclimit.Call) int {
		return strings.Count(fmt.Sprint(c.Message), "costs")
	})), nil)
	for _, text := range []string{"costs", "free"} {
		if _, err := say(t.Context(), conn, text); err != nil {
			t.Fatal(err)
		}
	}
	want(t, "decisions", fmt.Sprint(seen), fmt.Sprint([]hybrid.Result{allowed, {}}))
}
