package grpclimit

import (
	"context"
	"fmt"
	"log/slog"

	"google.golang.org/grpc/codes"

	"github.com/resilient-go/limiter/hybrid"
)

// An Option changes a default of [NewServer].
type Option func(*config)

// A ConfigError says which argument of [NewServer] or [NewClient] is wrong.
type ConfigError struct {
	Field string // "WithCode", "ByIP", …
	Err   error
}

func (e *ConfigError) Error() string { return "grpclimit: " + e.Field + ": " + e.Err.Error() }

func (e *ConfigError) Unwrap() error { return e.Err }

func bad(field, format string, args ...any) error {
	return &ConfigError{Field: field, Err: fmt.Errorf(format, args...)}
}

type config struct {
	key       Key
	passEmpty bool
	cost      func(context.Context, Call) int
	messages  Messages

	code, degradedCode codes.Code
	keyInDetails       bool
	onLimited          func(context.Context, Call, hybrid.Result) error
	onError            func(context.Context, Call, error) error
	name               string
	log                *slog.Logger

	codeSet, degradedSet, nameSet, messagesSet bool
}

// WithKey sets whose bucket a call counts against. Several keys are joined as by
// [Join]. Default: [ByIP] without trusted proxies.
func WithKey(keys ...Key) Option { return func(c *config) { c.key = Join(keys...) } }

// WithEmptyKeyPassed lets calls without a key pass without a limit. One a minute
// is logged. Default: they are refused with InvalidArgument ([ErrNoKey]).
func WithEmptyKeyPassed() Option { return func(c *config) { c.passEmpty = true } }

// WithCost sets how many tokens a call, or with [WithPerMessage] a message, costs.
// What costs 0 passes without the limiter being asked and needs no key: health
// checks, for instance. A negative cost is an error of the limiter; one above the
// burst can never pass, and is refused without RetryInfo. Default: 1.
func WithCost(f func(ctx context.Context, c Call) int) Option { return func(c *config) { c.cost = f } }

// Messages of a stream, seen from the side that limits: one or both.
type Messages uint8

const (
	// Received are the messages that RecvMsg returns.
	Received Messages = 1 << iota
	// Sent are those that are given to SendMsg.
	Sent

	both = Received | Sent
)

// WithPerMessage has streams asked for with each message instead of when they
// open. A refused message that was received is dropped, one to be sent is not sent;
// RecvMsg and SendMsg return the refusal, and a handler that returns it ends the
// stream with it, or it may go on. Unary calls are not concerned. Default: streams
// cost when they open.
func WithPerMessage(m Messages) Option {
	return func(c *config) { c.messages, c.messagesSet = m, true }
}

// WithCode sets the code of a refusal, anything but OK. Clients that retry
// Unavailable by themselves may not do so with ResourceExhausted. Default:
// ResourceExhausted.
func WithCode(code codes.Code) Option {
	return func(c *config) { c.code, c.codeSet = code, true }
}

// WithDegradedCode sets the code of a refusal while Redis is not asked
// ([hybrid.SourceDegraded]). Default: as WithCode.
func WithDegradedCode(code codes.Code) Option {
	return func(c *config) { c.degradedCode, c.degradedSet = code, true }
}

// WithKeyInDetails names the key as the subject of the QuotaFailure, so that a
// client sees which of its quotas is used up. A key may tell a client more than it
// should know. Default: the subject is the policy's name.
func WithKeyInDetails() Option { return func(c *config) { c.keyInDetails = true } }

// WithOnLimited has f say what becomes of a refused call: its error is returned to
// the client as it is, and nil lets the call pass; [hybrid.WithShadow] is the better
// way to try a limit out. It contradicts the options of codes and details.
func WithOnLimited(f func(ctx context.Context, c Call, res hybrid.Result) error) Option {
	return func(c *config) { c.onLimited = f }
}

// WithOnError has f say what becomes of calls that could not be decided: [ErrNoKey],
// [hybrid.ErrExceedsBurst], [hybrid.ErrClosed]. Its error is returned to the client
// as it is, and nil lets the call pass. It is not called if the call's context has
// ended: that gets the code of its end. Default: neutral errors with the codes
// InvalidArgument, ResourceExhausted and for all else Unavailable; the error is
// logged, once a minute at most.
func WithOnError(f func(ctx context.Context, c Call, err error) error) Option {
	return func(c *config) { c.onError = f }
}

// WithPolicyName names the policy in the QuotaFailure. Default: the text of the
// limit, such as "100/s".
func WithPolicyName(name string) Option {
	return func(c *config) { c.name, c.nameSet = name, true }
}

// WithLogger sets where faults are logged. Default: [slog.Default].
func WithLogger(log *slog.Logger) Option { return func(c *config) { c.log = log } }

func newConfig(options []Option) config {
	c := config{key: ByIP(), code: codes.ResourceExhausted}
	for _, o := range options {
		if o != nil {
			o(&c)
		}
	}
	if !c.degradedSet {
		c.degradedCode = c.code
	}
	if c.log == nil {
		c.log = slog.Default()
	}
	return c
}

// validate checks what NewServer was given besides the limiter.
func (c *config) validate() error {
	if err := c.key.check("WithKey", onServer); err != nil {
		return err
	}
	switch {
	case !refuses(c.code):
		return bad("WithCode", "%v is no code of an error", c.code)
	case !refuses(c.degradedCode):
		return bad("WithDegradedCode", "%v is no code of an error", c.degradedCode)
	case c.onLimited != nil && (c.codeSet || c.degradedSet || c.keyInDetails || c.nameSet):
		return bad("WithOnLimited", "contradicts WithCode, WithDegradedCode, WithKeyInDetails and WithPolicyName")
	case c.nameSet && c.name == "":
		return bad("WithPolicyName", "the name is empty")
	case c.messagesSet && (c.messages == 0 || c.messages > both):
		return bad("WithPerMessage", "must be Received, Sent or both, not %d", c.messages)
	}
	return nil
}

func refuses(code codes.Code) bool { return code > codes.OK && code <= codes.Unauthenticated }
