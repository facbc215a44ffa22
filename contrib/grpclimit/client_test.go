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
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/resilient-go/limiter/contrib/grpclimit"
	"github.com/resilient-go/limiter/hybrid"
)

const (
	ownQuota = "the quota for outgoing calls is used up"
	paused   = "the remote side asked for a pause"
)

// TestClientTakesATokenPerCall of the target, and sends the call when it has it.
func TestClientTakesATokenPerCall(t *testing.T) {
	lim := says(allowed, nil)
	conn := serve(t, &echo{}, nil, client(t, lim))
	for range 2 {
		if _, err := say(t.Context(), conn, "hello"); err != nil {
			t.Fatal(err)
		}
	}
	open(t, conn)
	want(t, "asked", fmt.Sprint(lim.costs()), "[{passthrough:///echo 1} {passthrough:///echo 1} {passthrough:///echo 1}]")
}

func TestClientKeysAndCosts(t *testing.T) {
	lim := says(allowed, nil)
	c := client(t, lim,
		grpclimit.WithClientKey(grpclimit.ByMetadata("x-account"), grpclimit.ByMethod()),
		grpclimit.WithClientCost(func(ctx context.Context, _ grpclimit.Call) int {
			md, _ := metadata.FromOutgoingContext(ctx)
			return len(md.Get("weight"))
		}))
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-account", "a1")
	incoming := metadata.NewIncomingContext(t.Context(), metadata.Pairs("x-account", "a2", "weight", "1"))
	for _, test := range []struct {
		ctx  context.Context
		sent bool
	}{
		{ctx, true}, // costs nothing
		{metadata.AppendToOutgoingContext(ctx, "weight", "1", "weight", "1"), true},
		{metadata.AppendToOutgoingContext(incoming, "weight", "1"), false}, // the account is another's
		{t.Context(), true}, // has no key, and costs nothing
	} {
		sent, err := send(test.ctx, c, "/a.B/C", nil)
		want(t, "sent", sent, test.sent)
		if !test.sent {
			wantStatus(t, err, codes.InvalidArgument, noKey, 0, "")
			want(t, "matches", errors.Is(err, grpclimit.ErrNoKey), true)
		}
	}
	want(t, "asked", fmt.Sprint(lim.costs()), "[{a1|/a.B/C 2}]")
}

func TestClientFailsFast(t *testing.T) {
	lim := first(1)
	c := client(t, lim, grpclimit.WithFailFast(), grpclimit.WithClientKey(grpclimit.Fixed("account")))
	sent, err := send(t.Context(), c, method, nil)
	want(t, "sent", sent, true)
	want(t, "error", err, nil)
	sent, err = send(t.Context(), c, method, nil)
	want(t, "sent", sent, false)
	wantStatus(t, err, codes.ResourceExhausted, ownQuota, 10*time.Millisecond, "")
	var limited *grpclimit.LimitedError
	if !errors.As(err, &limited) || *limited != (grpclimit.LimitedError{Key: "account", RetryAfter: 10 * time.Millisecond}) {
		t.Errorf("%#v", err)
	}
	if strings.Contains(err.Error(), "account") {
		t.Errorf("the key is in %v", err)
	}
	// Passed on by a server it still says nothing more.
	want(t, "passed on", status.Convert(fmt.Errorf("backend: %w", err)).Message(), "backend: grpclimit: "+ownQuota+"; try again in 10ms")
}

func TestErrorsOfAClient(t *testing.T) {
	for _, test := range []struct {
		err  error
		code codes.Code
		text string
	}{
		{context.Canceled, codes.Canceled, "context canceled"},
		{context.DeadlineExceeded, codes.DeadlineExceeded, "context deadline exceeded"},
		{hybrid.ErrWouldExceedDeadline, codes.DeadlineExceeded, "context deadline exceeded"},
		{hybrid.ErrExceedsBurst, codes.ResourceExhausted, tooMuch},
		{hybrid.ErrClosed, codes.Unavailable, unable},
		{errors.New("dial tcp 10.1.2.3:6379"), codes.Unavailable, unable},
	} {
		lim := says(hybrid.Result{}, test.err)
		lim.waiting = func(context.Context) (hybrid.Result, error) { return hybrid.Result{}, test.err }
		for _, options := range [][]grpclimit.ClientOption{
			{grpclimit.WithClientKey(grpclimit.ByMethod())},
			{grpclimit.WithClientKey(grpclimit.ByMethod()), grpclimit.WithFailFast()},
		} {
			sent, err := send(t.Context(), client(t, lim, options...), method, nil)
			want(t, "sent", sent, false)
			want(t, fmt.Sprint("matches ", test.err), errors.Is(err, test.err), true)
			wantStatus(t, err, test.code, test.text, 0, "")
		}
	}
}

// TestWaitThatEndsRefused is an error too, as with a limit that admits nothing.
func TestWaitThatEndsRefused(t *testing.T) {
	lim := says(refused, nil)
	lim.waiting = func(context.Context) (hybrid.Result, error) { return refused, nil }
	sent, err := send(t.Context(), client(t, lim, grpclimit.WithClientKey(grpclimit.ByMethod())), method, nil)
	want(t, "sent", sent, false)
	wantStatus(t, err, codes.ResourceExhausted, ownQuota, 10*time.Millisecond, "")
}

func TestClientWaitsForItsQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := says(allowed, nil)
		lim.waiting = func(ctx context.Context) (hybrid.Result, error) {
			select {
			case <-time.After(time.Second):
				return allowed, nil
			case <-ctx.Done():
				return hybrid.Result{}, ctx.Err()
			}
		}
		c := client(t, lim, grpclimit.WithClientKey(grpclimit.ByMethod()))
		begun := time.Now()
		sent, err := send(t.Context(), c, method, nil)
		want(t, "sent", sent, true)
		want(t, "error", err, nil)
		want(t, "after", time.Since(begun), time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(300*time.Millisecond, cancel)
		begun = time.Now()
		sent, err = send(ctx, c, method, nil)
		want(t, "sent", sent, false)
		wantStatus(t, err, codes.Canceled, "context canceled", 0, "")
		want(t, "after", time.Since(begun), 300*time.Millisecond)
	})
}
