package httplimit

import (
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"
)

// Defaults of the options of [NewTransport].
const (
	DefaultBackoff    = 100 * time.Millisecond
	DefaultMaxBackoff = 10 * time.Second
	DefaultMaxPause   = 10 * time.Minute
	DefaultMaxPauses  = 4096
)

// A TransportOption changes a default of [NewTransport].
type TransportOption func(*transportConfig)

type transportConfig struct {
	key                 func(*http.Request) string
	failFast            bool
	retries             int
	backoff, maxBackoff time.Duration
	maxPause            time.Duration
	maxPauses           int
	random              func(n int64) int64 // uniform in [0, n)
}

// WithTransportKey sets whose quota an outgoing request counts against: the
// account at the remote side, for instance. A request without a key fails with
// [ErrNoKey]. Default: the host in lower case, with the port unless it is the
// scheme's own.
func WithTransportKey(f func(req *http.Request) string) TransportOption {
	return func(c *transportConfig) { c.key = f }
}

// WithFailFast has requests that would have to wait fail with a [*LimitedError].
// Default: they wait.
func WithFailFast() TransportOption { return func(c *transportConfig) { c.failFast = true } }

// WithRetries has a request that was answered with 429 or 503 sent again, up to n
// times, after the back-off and after the pause that the answer asked for. It is
// retried only if its body can be had again ([http.Request.GetBody]), and after a
// 503 only if its method is idempotent or it has an Idempotency-Key. If the context's
// deadline comes first, or the limiter does not give a token, the answer is returned
// as it is. Errors of the connection are not retried. Default: 0.
func WithRetries(n int) TransportOption { return func(c *transportConfig) { c.retries = n } }

// WithBackoff sets the back-off: before retry i, counted from 0, a random time
// above 0 and at most base·2^i or the cap, whichever is less. Default:
// [DefaultBackoff] and [DefaultMaxBackoff].
func WithBackoff(base, most time.Duration) TransportOption {
	return func(c *transportConfig) { c.backoff, c.maxBackoff = base, most }
}

// WithMaxPause bounds the pause that a response can ask for: a remote side that
// asks for a year gets this. Default: [DefaultMaxPause].
func WithMaxPause(d time.Duration) TransportOption {
	return func(c *transportConfig) { c.maxPause = d }
}

// WithMaxPauses bounds how many keys can be paused at a time; beyond it, the pause
// that ends first is forgotten. Default: [DefaultMaxPauses].
func WithMaxPauses(n int) TransportOption { return func(c *transportConfig) { c.maxPauses = n } }

func newTransportConfig(options []TransportOption) transportConfig {
	c := transportConfig{
		key:        hostOf,
		backoff:    DefaultBackoff,
		maxBackoff: DefaultMaxBackoff,
		maxPause:   DefaultMaxPause,
		maxPauses:  DefaultMaxPauses,
		random:     rand.Int64N,
	}
	for _, o := range options {
		if o != nil {
			o(&c)
		}
	}
	return c
}

func (c *transportConfig) validate() error {
	switch {
	case c.key == nil:
		return bad("WithTransportKey", "the function is nil")
	case c.retries < 0:
		return bad("WithRetries", "must not be negative, not %d", c.retries)
	case c.backoff <= 0 || c.maxBackoff < c.backoff:
		return bad("WithBackoff", "the base must be positive and at most the cap, not %v and %v", c.backoff, c.maxBackoff)
	case c.maxPause <= 0:
		return bad("WithMaxPause", "must be positive, not %v", c.maxPause)
	case c.maxPauses < 1:
		return bad("WithMaxPauses", "must be at least 1, not %d", c.maxPauses)
	}
	return nil
}

// hostOf is the default key.
func hostOf(req *http.Request) string {
	if req.URL == nil {
		return ""
	}
	host := strings.TrimSuffix(strings.ToLower(req.URL.Hostname()), ".")
	port := req.URL.Port()
	if host == "" || port == "" || port == "80" && req.URL.Scheme == "http" || port == "443" && req.URL.Scheme == "https" {
		return host
	}
	return net.JoinHostPort(host, port)
}
