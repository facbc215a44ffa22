package hybrid

import (
	"context"
	"errors"
	"fmt"
)

// Errors that callers test for with errors.Is. None of them costs a token. An
// outage of Redis is not among them: the answer then is a Result whose Source
// is [SourceDegraded].
var (
	// ErrClosed: the limiter was closed.
	ErrClosed = errors.New("hybrid: the limiter is closed")
	// ErrInvalidKey: the key is empty.
	ErrInvalidKey = errors.New("hybrid: empty key")
	// ErrInvalidN: a negative number of tokens.
	ErrInvalidN = errors.New("hybrid: negative number of tokens")
	// ErrInvalidPriority: neither PriorityNormal nor PriorityLow.
	ErrInvalidPriority = errors.New("hybrid: unknown priority")
	// ErrExceedsBurst: more tokens than the burst, or than this instance's local
	// share of it, less what low priority leaves alone. The request can never pass, so there is no RetryAfter.
	ErrExceedsBurst = errors.New("hybrid: the request exceeds the burst, or this instance's share of it, and can never pass")
	// ErrWouldExceedDeadline: Wait cannot get the permit before the context's
	// deadline. It matches context.DeadlineExceeded as well.
	ErrWouldExceedDeadline error = deadlineError{}
	// ErrUnavailable: Redis was needed and could not be reached (Reset).
	ErrUnavailable = errors.New("hybrid: Redis is unavailable")
)

type deadlineError struct{}

func (deadlineError) Error() string { return "hybrid: the wait would exceed the context's deadline" }

func (deadlineError) Is(target error) bool { return target == context.DeadlineExceeded }

// A ConfigError says which argument of [New] or part of a text is wrong.
type ConfigError struct {
	Field  string // "Limit", "WithLocalShare", …
	Reason string
}

func (e *ConfigError) Error() string { return "hybrid: " + e.Field + ": " + e.Reason }

// A CloseError says what Close had to leave behind. The limiter is closed all
// the same.
type CloseError struct {
	// Calls that the caller's Redis client has not given up. They end by its own
	// time-outs.
	Calls int
	// Tokens held on lease that could not be given back. They are free again when
	// their leases end.
	Tokens int64
}

func (e *CloseError) Error() string {
	return fmt.Sprintf("hybrid: closed with %d calls still inside the Redis client and %d tokens not given back", e.Calls, e.Tokens)
}
