package grpclimit

import (
	"context"
	"errors"
	"reflect"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/resilient-go/limiter/hybrid"
)

// A Limiter decides calls. [*hybrid.Limiter] is one; a test may use its own.
type Limiter interface {
	// Take decides a request for N tokens of a key; N = 0 only looks.
	Take(ctx context.Context, r hybrid.Request) (hybrid.Result, error)
}

// ErrNoKey says that a call has no key, for instance because its metadata lacks a
// value.
var ErrNoKey = errors.New("grpclimit: the call has no key")

// A Server limits the calls that a gRPC server takes. Its methods Unary and Stream
// are interceptors. Make one with [NewServer]. It may be used by many goroutines at
// once.
type Server struct {
	config
	lim Limiter

	epoch    time.Time
	complain [complaints]atomic.Int64 // when each may be logged again, since epoch
}

// NewServer returns interceptors that ask lim for one token per call, or what
// [WithCost] says, before the handler is called.
//
// Interceptors on one limiter share its buckets: the same key is the same bucket.
// The handler gets the decision by [FromContext].
//
// The error is a [*ConfigError].
func NewServer(lim Limiter, options ...Option) (*Server, error) {
	if isNil(lim) {
		return nil, bad("NewServer", "the limiter is nil")
	}
	c := newConfig(options)
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Server{config: c, lim: lim, epoch: time.Now()}, nil
}

// Unary is a [grpc.UnaryServerInterceptor].
func (s *Server) Unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	ctx, err := s.decide(ctx, Call{Method: info.FullMethod, Message: req})
	if err != nil {
		return nil, err
	}
	return handler(ctx, req)
}

// decide is what happens to a call, or to a message of a stream: an error refuses
// it, and the context that is returned holds the decision. No lock is held.
func (s *Server) decide(ctx context.Context, c Call) (context.Context, error) {
	n := 1
	if s.cost != nil {
		if n = s.cost(ctx, c); n == 0 {
			return ctx, nil
		}
	}
	key := s.key.of(ctx, c, onServer)
	if key == "" {
		if !s.passEmpty {
			return ctx, s.fail(ctx, c, ErrNoKey)
		}
		s.warn(ctx, c, complaintPassed, "grpclimit: a call without a key passes without a limit")
		return ctx, nil
	}
	res, err := s.lim.Take(ctx, hybrid.Request{Key: key, N: n})
	if err != nil {
		return ctx, s.fail(ctx, c, err)
	}
	ctx = context.WithValue(ctx, resultKey{}, res)
	if !res.Allowed {
		return ctx, s.refuse(ctx, c, key, res)
	}
	return ctx, nil
}

type resultKey struct{}

// FromContext returns the decision on a call, from the context that a handler got.
// Of nested limiters it is that of the innermost. It reports false if none decided:
// outside of an interceptor, if the call cost nothing, or if its messages are asked
// for one by one.
func FromContext(ctx context.Context) (hybrid.Result, bool) {
	res, ok := ctx.Value(resultKey{}).(hybrid.Result)
	return res, ok
}

// The things that are worth a line in the log, each at most once a minute.
const (
	complaintRefused = iota
	complaintPassed
	complaintFailed
	complaints
)

const complainEvery = time.Minute

// warn logs a fault that may come with every call.
func (s *Server) warn(ctx context.Context, c Call, kind int, text string, args ...any) {
	now := int64(time.Since(s.epoch))
	due := s.complain[kind].Load()
	if now < due || !s.complain[kind].CompareAndSwap(due, now+int64(complainEvery)) {
		return
	}
	s.log.WarnContext(ctx, text, append(args, "method", c.Method)...)
}

// isNil also finds a nil pointer in an interface.
func isNil(v any) bool {
	rv := reflect.ValueOf(v)
	return !rv.IsValid() || rv.Kind() == reflect.Pointer && rv.IsNil()
}
