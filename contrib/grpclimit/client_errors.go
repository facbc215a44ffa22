package grpclimit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A LimitedError says that a call was not sent. Its status has the code
// ResourceExhausted and a RetryInfo.
type LimitedError struct {
	// Key of the quota, by default the target; or of the pause. It is in no text,
	// since servers pass such errors on.
	Key string
	// RetryAfter is how long to wait before the same call can be sent.
	RetryAfter time.Duration
	// Remote: the remote side asked for a pause. Else the own quota is used up.
	Remote bool
}

func (e *LimitedError) Error() string {
	return fmt.Sprintf("grpclimit: %s; try again in %v", e.why(), e.RetryAfter)
}

func (e *LimitedError) why() string {
	if e.Remote {
		return "the remote side asked for a pause"
	}
	return "the quota for outgoing calls is used up"
}

// GRPCStatus is for [status.FromError] and [status.Code].
func (e *LimitedError) GRPCStatus() *status.Status {
	return limited(codes.ResourceExhausted, e.why(), e.RetryAfter, "")
}

// A callError is an error of the limiter or the context that has a status.
type callError struct{ err error }

func clientError(err error) error { return &callError{err} }

func (e *callError) Error() string { return e.err.Error() }

func (e *callError) Unwrap() error { return e.err }

func (e *callError) GRPCStatus() *status.Status {
	switch {
	case errors.Is(e.err, context.DeadlineExceeded): // ErrWouldExceedDeadline as well
		return status.New(codes.DeadlineExceeded, context.DeadlineExceeded.Error())
	case errors.Is(e.err, context.Canceled):
		return status.New(codes.Canceled, context.Canceled.Error())
	default:
		return statusOf(e.err)
	}
}
