package grpclimit

import (
	"context"
	"time"

	"google.golang.org/grpc"

	"github.com/resilient-go/limiter/hybrid"
)

// A WaitLimiter is a [Limiter] that can also be waited for. [*hybrid.Limiter] is
// one.
type WaitLimiter interface {
	Limiter
	// WaitN waits for n tokens of a key.
	WaitN(ctx context.Context, key string, n int) (hybrid.Result, error)
}

// A Client keeps the calls of a gRPC client within a quota that all instances
// share, and does what the remote side asks for. Its methods Unary and Stream are
// interceptors. Make one with [NewClient]. It may be used by many goroutines and
// connections at once.
//
// Each call takes one token of its key, by default the target's. It waits for it as
// [hybrid.Limiter.WaitN] does: in order of arrival, and within its context. With
// [WithFailFast] it fails with a [*LimitedError] instead.
//
// An answer with the code ResourceExhausted or Unavailable and a RetryInfo makes a
// pause for its target and method: the calls that follow wait until it ends, in this
// process. No call is sent again by a Client. Retries that gRPC makes itself, by a
// service config, happen below the interceptors: they take no token and heed no
// pause.
//
// A call that cannot be sent before its context's deadline fails at once, with
// DeadlineExceeded and an error that matches [hybrid.ErrWouldExceedDeadline] and
// [context.DeadlineExceeded]. Other errors of the limiter have the codes that a
// [Server] gives them, and match themselves.
type Client struct {
	clientConfig
	lim    WaitLimiter
	pauses pauses
}

// NewClient returns interceptors that ask lim for one token per call. The error is
// a [*ConfigError].
func NewClient(lim WaitLimiter, options ...ClientOption) (*Client, error) {
	if isNil(lim) {
		return nil, bad("NewClient", "the limiter is nil")
	}
	c := newClientConfig(options)
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Client{clientConfig: c, lim: lim, pauses: pauses{most: c.maxPauses}}, nil
}

// Unary is a [grpc.UnaryClientInterceptor].
func (c *Client) Unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	call := Call{Method: method, Target: target(cc), Message: req}
	if err := c.admit(ctx, call); err != nil {
		return err
	}
	err := invoker(ctx, method, req, reply, cc, opts...)
	c.heed(ctx, call, err)
	return err
}

// target is empty without a connection, as in tests of other interceptors.
func target(cc *grpc.ClientConn) string {
	if cc == nil {
		return ""
	}
	return cc.Target()
}

// admit waits until a call or a message may be sent.
func (c *Client) admit(ctx context.Context, call Call) error {
	n := 1
	if c.cost != nil {
		n = c.cost(ctx, call)
	}
	key := c.key.of(ctx, call, onClient)
	if key == "" && n != 0 {
		return clientError(ErrNoKey)
	}
	pause := c.pauseOf(ctx, call)
	if c.failFast {
		return c.admitNow(ctx, key, pause, n)
	}
	for {
		if d := c.pauses.left(pause, time.Now()); d > 0 {
			if err := sleep(ctx, d); err != nil {
				return clientError(err)
			}
			continue // it may have been made longer
		}
		if n == 0 {
			return nil
		}
		res, err := c.lim.WaitN(ctx, key, n)
		switch {
		case err != nil:
			return clientError(err)
		case !res.Allowed:
			return &LimitedError{Key: key, RetryAfter: res.RetryAfter}
		case c.pauses.left(pause, time.Now()) == 0:
			return nil
		}
		// A pause began meanwhile. Those who waited for the limiter would all be sent
		// when it ends; so their permits are dropped and asked for again.
	}
}

func (c *Client) admitNow(ctx context.Context, key, pause string, n int) error {
	if d := c.pauses.left(pause, time.Now()); d > 0 {
		return &LimitedError{Key: pause, RetryAfter: d, Remote: true}
	}
	if n == 0 {
		return nil
	}
	res, err := c.lim.Take(ctx, hybrid.Request{Key: key, N: n})
	switch {
	case err != nil:
		return clientError(err)
	case !res.Allowed:
		return &LimitedError{Key: key, RetryAfter: res.RetryAfter}
	}
	return nil
}

// heed keeps in mind what an answer asks for.
func (c *Client) heed(ctx context.Context, call Call, err error) {
	if err == nil || c.noPauses {
		return
	}
	d := min(pauseAsked(err), c.maxPause)
	if d <= 0 {
		return
	}
	if key := c.pauseOf(ctx, call); key != "" {
		now := time.Now()
		c.pauses.extend(key, now, now.Add(d))
	}
}

// pauseOf is the key of a call's pause. It sees no message, since a stream has many.
func (c *Client) pauseOf(ctx context.Context, call Call) string {
	call.Message = nil
	return c.pauseKey.of(ctx, call, onClient)
}

// sleep waits for d, and not at all if the context's deadline is earlier.
func sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if end, ok := ctx.Deadline(); ok && time.Until(end) < d {
		return hybrid.ErrWouldExceedDeadline
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
