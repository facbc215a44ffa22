package hybrid

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrLimited is what a [*LimitedError] matches.
var ErrLimited = errors.New("hybrid: rate limit exceeded")

// A LimitedError is a refusal as an error, for functions that return one.
type LimitedError struct {
	Key    string
	Part   string // of a combined decision, see [Combine]
	Result Result // its RetryAfter says when to come again
}

func (e *LimitedError) Error() string {
	of := ""
	if e.Part != "" {
		of = fmt.Sprintf(" (%s)", e.Part)
	}
	return fmt.Sprintf("hybrid: rate limit of %v%s exceeded, retry after %v", e.Result.Limit, of, e.Result.RetryAfter)
}

// Is reports whether target is [ErrLimited].
func (e *LimitedError) Is(target error) bool { return target == ErrLimited }

// A Taker decides requests: a [*Limiter], or what stands in for one in a test.
type Taker interface {
	Take(ctx context.Context, r Request) (Result, error)
}

// Do runs fn if the request is admitted, and returns what it returns. Otherwise
// the error is a [*LimitedError], or what [Limiter.Take] returned.
func Do[T any](ctx context.Context, lim Taker, r Request, fn func(context.Context) (T, error)) (T, error) {
	res, err := lim.Take(ctx, r)
	if err == nil && !res.Allowed {
		err = &LimitedError{Key: r.Key, Result: res}
	}
	if err != nil {
		var zero T
		return zero, err
	}
	return fn(ctx)
}

// Retries say how [Retry] goes on after a refusal.
type Retries struct {
	// Attempts is how often the limiter is asked at most; 0: until the context ends.
	Attempts int
	// Backoff is added to the RetryAfter of the refusal: those who were refused
	// together spread out the more, the more often they are refused.
	Backoff Backoff
	// Again, if set, says which errors of the function are worth another attempt,
	// which waits for the back-off and asks the limiter again.
	Again func(error) bool
}

// Retry is [Do] that comes again after a refusal, when RetryAfter and a back-off
// have passed. A refusal costs nothing. It ends with what the function returns;
// with the last [*LimitedError] when there were enough attempts, or when the next
// one would come after the context's deadline; or with the context's error.
//
// [Limiter.WaitN] queues instead, in order of arrival, and is the better choice
// within one instance; Retry keeps no place.
func Retry[T any](ctx context.Context, lim Taker, r Request, retries Retries, fn func(context.Context) (T, error)) (T, error) {
	refusals, failures := 0, 0
	for attempt := 1; ; attempt++ {
		value, err := Do(ctx, lim, r, fn)
		var (
			limited *LimitedError
			wait    time.Duration
		)
		switch {
		case errors.As(err, &limited) && limited.Key == r.Key:
			wait = limited.Result.RetryAfter + retries.Backoff.Delay(refusals)
			refusals++
		case err != nil && retries.Again != nil && ctx.Err() == nil && retries.Again(err):
			wait = retries.Backoff.Delay(failures)
			failures++
		default:
			return value, err
		}
		if attempt == retries.Attempts {
			return value, err
		}
		if end, ok := ctx.Deadline(); ok && time.Until(end) < wait {
			return value, err
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return value, ctx.Err()
		}
	}
}
