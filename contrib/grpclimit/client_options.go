package grpclimit

import (
	"context"
	"time"
)

// Defaults of the options of [NewClient].
const (
	DefaultMaxPause  = 10 * time.Minute
	DefaultMaxPauses = 4096
)

// A ClientOption changes a default of [NewClient].
type ClientOption func(*clientConfig)

type clientConfig struct {
	key       Key
	cost      func(context.Context, Call) int
	messages  Messages
	failFast  bool
	pauseKey  Key
	noPauses  bool
	maxPause  time.Duration
	maxPauses int

	messagesSet, pauseKeySet bool
}

// WithClientKey sets whose quota an outgoing call counts against: the account at
// the remote side, for instance. Several keys are joined as by [Join]. A call
// without a key fails with [ErrNoKey]. Default: [ByTarget].
func WithClientKey(keys ...Key) ClientOption {
	return func(c *clientConfig) { c.key = Join(keys...) }
}

// WithClientCost sets how many tokens a call, or with [WithClientPerMessage] a
// message, costs. What costs 0 passes without the limiter being asked; a pause
// holds it up all the same. Default: 1.
func WithClientCost(f func(ctx context.Context, c Call) int) ClientOption {
	return func(c *clientConfig) { c.cost = f }
}

// WithClientPerMessage has streams asked for with each message instead of when
// they open. One that is to be sent waits before, one that was received waits before
// RecvMsg returns it, which slows the sender down. If a wait fails, so does the
// stream. Default: streams cost when they open.
func WithClientPerMessage(m Messages) ClientOption {
	return func(c *clientConfig) { c.messages, c.messagesSet = m, true }
}

// WithFailFast has calls that would have to wait fail with a [*LimitedError].
// Default: they wait.
func WithFailFast() ClientOption { return func(c *clientConfig) { c.failFast = true } }

// WithPauseKey sets which calls a pause holds up that the remote side asked for:
// those with the same key. A call without a key neither makes a pause nor heeds one,
// and the key sees no message. Default: [ByTarget] and [ByMethod], since a server may limit methods apart.
func WithPauseKey(keys ...Key) ClientOption {
	return func(c *clientConfig) { c.pauseKey, c.pauseKeySet = Join(keys...), true }
}

// WithoutPauses lets what the remote side asks for go unheeded. It contradicts
// [WithPauseKey].
func WithoutPauses() ClientOption { return func(c *clientConfig) { c.noPauses = true } }

// WithMaxPause bounds the pause that an answer can ask for: a remote side that asks
// for a year gets this. Default: [DefaultMaxPause].
func WithMaxPause(d time.Duration) ClientOption { return func(c *clientConfig) { c.maxPause = d } }

// WithMaxPauses bounds how many keys can be paused at a time; beyond it, the pause
// that ends first is forgotten. Default: [DefaultMaxPauses].
func WithMaxPauses(n int) ClientOption { return func(c *clientConfig) { c.maxPauses = n } }

func newClientConfig(options []ClientOption) clientConfig {
	c := clientConfig{
		key:       ByTarget(),
		pauseKey:  Join(ByTarget(), ByMethod()),
		maxPause:  DefaultMaxPause,
		maxPauses: DefaultMaxPauses,
	}
	for _, o := range options {
		if o != nil {
			o(&c)
		}
	}
	return c
}

// validate checks what NewClient was given besides the limiter.
func (c *clientConfig) validate() error {
	if err := c.key.check("WithClientKey", onClient); err != nil {
		return err
	}
	if err := c.pauseKey.check("WithPauseKey", onClient); err != nil {
		return err
	}
	switch {
	case c.noPauses && c.pauseKeySet:
		return bad("WithoutPauses", "contradicts WithPauseKey")
	case c.maxPause <= 0:
		return bad("WithMaxPause", "must be positive, not %v", c.maxPause)
	case c.maxPauses < 1:
		return bad("WithMaxPauses", "must be at least 1, not %d", c.maxPauses)
	case c.messagesSet && (c.messages == 0 || c.messages > both):
		return bad("WithClientPerMessage", "must be Received, Sent or both, not %d", c.messages)
	}
	return nil
}
