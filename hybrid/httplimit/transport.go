package httplimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/resilient-go/limiter/hybrid"
)

// A WaitLimiter is a [Limiter] that can also be waited for. [*hybrid.Limiter] is
// one.
type WaitLimiter interface {
	Limiter
	// WaitN waits for n tokens of a key.
	WaitN(ctx context.Context, key string, n int) (hybrid.Result, error)
}

// A LimitedError says that a request was not sent.
type LimitedError struct {
	// Key of the request, by default its host.
	Key string
	// RetryAfter is how long to wait before the same request can be sent.
	RetryAfter time.Duration
	// Remote: the remote side asked for a pause. Else the own quota is used up.
	Remote bool
}

func (e *LimitedError) Error() string {
	why := "the quota is used up"
	if e.Remote {
		why = "the remote side asked for a pause"
	}
	return fmt.Sprintf("httplimit: %s: %s; try again in %v", e.Key, why, e.RetryAfter)
}

// A Transport is an [http.RoundTripper] that keeps outgoing requests within a
// quota that all instances share, and that does what the remote side asks for.
// Make one with [NewTransport]. It may be used by many goroutines at once.
//
// Each request, retries included, takes one token of its key, by default the
// host's. It waits for it as [hybrid.Limiter.WaitN] does: in order of arrival, and
// within its context. With [WithFailFast] it fails with a [*LimitedError] instead.
//
// A response with Retry-After (in seconds or as a date; status 429 or 503), or with
// a RateLimit member of which nothing remains, makes a pause for its key: the
// requests that follow wait until it ends, in this process. RateLimit is not heeded
// in answers of a cache (Age above 0) or beside Retry-After.
//
// A request that cannot be sent before its context's deadline fails at once with an
// error that matches [hybrid.ErrWouldExceedDeadline] and
// [context.DeadlineExceeded]. The other errors are ErrNoKey, those of the limiter,
// and those of the transport below. The body of a request is closed in any case, and
// a request is never changed.
type Transport struct {
	transportConfig
	lim    WaitLimiter
	base   http.RoundTripper
	pauses pauses
}

// NewTransport returns a Transport that sends through base; nil is
// [http.DefaultTransport]. The error is a [*ConfigError].
func NewTransport(lim WaitLimiter, base http.RoundTripper, options ...TransportOption) (*Transport, error) {
	if isNil(lim) {
		return nil, bad("NewTransport", "the limiter is nil")
	}
	if isNil(base) {
		base = http.DefaultTransport
	}
	c := newTransportConfig(options)
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Transport{transportConfig: c, lim: lim, base: base, pauses: pauses{most: c.maxPauses}}, nil
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	key := t.key(req)
	if key == "" {
		closeBody(req)
		return nil, ErrNoKey
	}
	if err := t.admit(req.Context(), key); err != nil {
		closeBody(req)
		return nil, err
	}
	resp, err := t.base.RoundTrip(req)
	for retry := 0; err == nil; retry++ {
		t.heed(key, resp)
		if retry == t.retries || !retryable(req, resp) {
			break
		}
		again, giveUp := t.again(req, key, resp, retry)
		if giveUp != nil {
			_ = resp.Body.Close() // it was an answer to nobody
			return nil, giveUp
		}
		if again == nil {
			break
		}
		_ = resp.Body.Close() // its connection is the next request's, or lost
		resp, err = t.base.RoundTrip(again)
	}
	return resp, err
}

// CloseIdleConnections does so below. It is for [http.Client.CloseIdleConnections].
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// admit waits until a request may be sent.
func (t *Transport) admit(ctx context.Context, key string) error {
	if t.failFast {
		return t.admitNow(ctx, key)
	}
	for {
		if d := t.pauses.left(key, time.Now()); d > 0 {
			if err := sleep(ctx, d); err != nil {
				return err
			}
			continue // it may have been made longer
		}
		res, err := t.lim.WaitN(ctx, key, 1)
		switch {
		case err != nil:
			return err
		case !res.Allowed:
			return &LimitedError{Key: key, RetryAfter: res.RetryAfter}
		case t.pauses.left(key, time.Now()) == 0:
			return nil
		}
		// A pause began meanwhile. Those who waited for the limiter would all be sent
		// when it ends; so their permits are dropped and asked for again.
	}
}

func (t *Transport) admitNow(ctx context.Context, key string) error {
	if d := t.pauses.left(key, time.Now()); d > 0 {
		return &LimitedError{Key: key, RetryAfter: d, Remote: true}
	}
	res, err := t.lim.Take(ctx, hybrid.Request{Key: key, N: 1})
	if err == nil && !res.Allowed {
		err = &LimitedError{Key: key, RetryAfter: res.RetryAfter}
	}
	return err
}

// heed keeps in mind what a response asks for.
func (t *Transport) heed(key string, resp *http.Response) {
	now := time.Now()
	if d := min(pauseAsked(resp, now), t.maxPause); d > 0 {
		t.pauses.extend(key, now, now.Add(d))
	}
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

var errTooLate = errors.New("httplimit: the remote side asked for a pause that ends after the context's deadline")

// sleep waits for d, and not at all if the context's deadline comes first.
func sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= d {
		return fmt.Errorf("%w: %w", errTooLate, hybrid.ErrWouldExceedDeadline)
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
