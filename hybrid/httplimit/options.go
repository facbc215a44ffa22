package httplimit

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"

	"github.com/resilient-go/limiter/hybrid"
)

// An Option changes a default of [New].
type Option func(*config)

// A ConfigError says which argument of [New] or [NewTransport] is wrong.
type ConfigError struct {
	Field  string // "WithStatus", "TrustProxies", …
	Reason string
}

func (e *ConfigError) Error() string { return "httplimit: " + e.Field + ": " + e.Reason }

func bad(field, format string, args ...any) error {
	return &ConfigError{Field: field, Reason: fmt.Sprintf(format, args...)}
}

type config struct {
	key       Key
	passEmpty bool
	cost      func(*http.Request) int
	costAfter func(Response) int
	settle    func(Response) int

	status, degradedStatus int
	contentType            string
	body                   []byte
	problem                bool
	onLimited              func(http.ResponseWriter, *http.Request, hybrid.Result)
	onError                func(http.ResponseWriter, *http.Request, error, http.Handler)

	name         string
	noFields     bool
	legacy       LegacyReset
	partitionKey []byte
	log          *slog.Logger

	statusSet, degradedSet, bodySet, nameSet, partitionSet bool
}

// WithKey sets whose bucket a request counts against. Several keys are joined as
// by [Join]. Default: [ByIP] without trusted proxies.
func WithKey(keys ...Key) Option { return func(c *config) { c.key = Join(keys...) } }

// WithEmptyKeyPassed lets requests without a key pass without a limit. One a
// minute is logged. Default: they are refused with status 400 ([ErrNoKey]).
func WithEmptyKeyPassed() Option { return func(c *config) { c.passEmpty = true } }

// WithCost sets how many tokens a request costs. A request that costs 0 passes
// without the limiter being asked: it is not counted, needs no key, and gets no
// RateLimit fields. A negative cost is an error of the limiter; one above the burst
// can never pass and gets status 413. Default: 1.
func WithCost(f func(r *http.Request) int) Option { return func(c *config) { c.cost = f } }

// WithCostAfter has a request charged when its response is known, with the
// number of tokens that f returns; 0 or less costs nothing. Use it to limit failed
// logins only. It contradicts [WithCost].
//
// Before the handler the limiter is only looked at: a request is refused if its
// key does not have one token. So requests that are under way at the same time all
// pass, and a limit may be exceeded by as many as these. The look asks Redis each
// time, and the charge again, before the handler's last bytes are sent. If the key
// has less than the cost, what it has is taken. The charge is made although the
// client has left, and with status 500 if the handler panicked before it answered.
// An error of it is logged, once a minute at most.
func WithCostAfter(f func(Response) int) Option { return func(c *config) { c.costAfter = f } }

// WithSettle makes what a request costs an estimate: that much is reserved before the
// handler, and when the response is known it is settled with what f returns, for
// instance by [PerBytes]. What was too much is given back, what is missing is charged,
// up to a debt of one burst ([hybrid.Reservation.Settle]); a cost below 0 counts as 0.
// Unlike with [WithCostAfter] requests that are under way have their tokens already,
// and hot keys are decided without Redis. The estimate is [WithCost], or one token;
// take the most that is usual. It contradicts WithCostAfter, and the limiter must be a
// [SettlingLimiter]. Costs are settled although the client has left, and with status
// 500 if the handler panicked before it answered.
func WithSettle(f func(Response) int) Option { return func(c *config) { c.settle = f } }

// WithStatus sets the status of a refusal, from 400 to 599. Default: 429.
func WithStatus(code int) Option {
	return func(c *config) { c.status, c.statusSet = code, true }
}

// WithDegradedStatus sets the status of a refusal while Redis is not asked
// ([hybrid.SourceDegraded]), from 400 to 599. The draft on the RateLimit fields
// recommends 503, which monitoring counts as a fault of the service. Default: as
// WithStatus.
func WithDegradedStatus(code int) Option {
	return func(c *config) { c.degradedStatus, c.degradedSet = code, true }
}

// WithBody sets the body of a refusal. Default: the text of the status, as
// text/plain.
func WithBody(contentType string, body []byte) Option {
	body = slices.Clone(body)
	return func(c *config) { c.contentType, c.body, c.bodySet = contentType, body, true }
}

// WithProblemJSON makes the bodies problem details (RFC 9457): the type
// quota-exceeded for a refusal, temporary-reduced-capacity for one while Redis is
// not asked, both with the policy's name. It contradicts [WithBody].
func WithProblemJSON() Option { return func(c *config) { c.problem = true } }

// WithOnLimited has f answer the refused requests. Retry-After and the RateLimit
// fields are set when it is called. It contradicts the options of status and body.
func WithOnLimited(f func(w http.ResponseWriter, r *http.Request, res hybrid.Result)) Option {
	return func(c *config) { c.onLimited = f }
}

// WithOnError has f answer the requests that could not be decided: [ErrNoKey],
// [hybrid.ErrExceedsBurst], [hybrid.ErrClosed]. It may call next to let one pass.
// It is not called if the request's context has ended: that gets status 503
// without a body. Default: a neutral 400, 413 and for all else 503; the error is
// logged, once a minute at most.
func WithOnError(f func(w http.ResponseWriter, r *http.Request, err error, next http.Handler)) Option {
	return func(c *config) { c.onError = f }
}

// WithPolicyName names the policy in the RateLimit fields and in problem details:
// printable ASCII. Nested limiters of the same limit need names. Default: the text
// of the limit, such as "100/s".
func WithPolicyName(name string) Option {
	return func(c *config) { c.name, c.nameSet = name, true }
}

// WithoutFields leaves RateLimit and RateLimit-Policy out. Retry-After stays.
func WithoutFields() Option { return func(c *config) { c.noFields = true } }

// A LegacyReset says what X-RateLimit-Reset is to mean; services differ.
type LegacyReset uint8

const (
	// ResetSeconds: seconds from now.
	ResetSeconds LegacyReset = iota + 1
	// ResetUnix: Unix time in seconds.
	ResetUnix
)

// WithLegacyFields adds X-RateLimit-Limit (the burst), X-RateLimit-Remaining and
// X-RateLimit-Reset (when the bucket is full). Of nested limiters the one with
// less remaining is told. Default: none of them.
func WithLegacyFields(reset LegacyReset) Option { return func(c *config) { c.legacy = reset } }

// WithPartitionKey adds the parameter pk to the RateLimit fields, so that clients
// can tell buckets apart: the first 16 bytes of the HMAC-SHA-256 of the key. The
// secret, of 16 bytes or more, keeps others from finding the key by trial; give all
// instances the same. Default: no pk.
func WithPartitionKey(secret []byte) Option {
	secret = slices.Clone(secret)
	return func(c *config) { c.partitionKey, c.partitionSet = secret, true }
}

// WithLogger sets where faults are logged. Default: [slog.Default].
func WithLogger(log *slog.Logger) Option { return func(c *config) { c.log = log } }

func newConfig(options []Option) config {
	c := config{key: ByIP(), status: http.StatusTooManyRequests}
	for _, o := range options {
		if o != nil {
			o(&c)
		}
	}
	if !c.degradedSet {
		c.degradedStatus = c.status
	}
	if c.log == nil {
		c.log = slog.Default()
	}
	return c
}

// validate checks what New was given besides the limiter.
func (c *config) validate() error {
	if err := c.key.check(); err != nil {
		return err
	}
	switch {
	case c.status < 400 || c.status > 599:
		return bad("WithStatus", "must be from 400 to 599, not %d", c.status)
	case c.degradedStatus < 400 || c.degradedStatus > 599:
		return bad("WithDegradedStatus", "must be from 400 to 599, not %d", c.degradedStatus)
	case c.costAfter != nil && c.cost != nil:
		return bad("WithCostAfter", "contradicts WithCost")
	case c.costAfter != nil && c.settle != nil:
		return bad("WithCostAfter", "contradicts WithSettle")
	case c.problem && c.bodySet:
		return bad("WithBody", "contradicts WithProblemJSON")
	case c.bodySet && !validValue(c.contentType):
		return bad("WithBody", "%q is no content type", c.contentType)
	case c.onLimited != nil && (c.statusSet || c.degradedSet || c.bodySet):
		return bad("WithOnLimited", "contradicts WithStatus, WithDegradedStatus and WithBody")
	case c.nameSet && (c.name == "" || !printable(c.name)):
		return bad("WithPolicyName", "must be printable ASCII and not empty, not %q", c.name)
	case c.legacy > ResetUnix:
		return bad("WithLegacyFields", "unknown LegacyReset %d", c.legacy)
	case c.partitionSet && len(c.partitionKey) < 16:
		return bad("WithPartitionKey", "the secret must have at least 16 bytes, not %d", len(c.partitionKey))
	}
	return nil
}
