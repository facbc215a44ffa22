package hybrid

import (
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/internal/inside"
	"github.com/resilient-go/limiter/remote"
)

// An Option changes a default of [New].
type Option func(*config)

// An OutagePolicy says what happens to requests while Redis cannot be asked.
type OutagePolicy uint8

const (
	// Share admits this instance's fair part of the limit: headroom·rate/N and
	// headroom·burst/N, at least 1, for N instances. The default.
	Share OutagePolicy = iota
	// FailOpen admits everything.
	FailOpen
	// FailClosed refuses everything.
	FailClosed
)

// Defaults of the options.
const (
	DefaultLocalShare        = 1.0
	DefaultLeaseHorizon      = 200 * time.Millisecond
	DefaultRemoteTimeout     = 50 * time.Millisecond
	DefaultExpectedInstances = 1
	DefaultHeadroom          = 1.0
	DefaultMaxKeys           = 100_000
	DefaultNearLimit         = 0.8
	DefaultReservation       = 30 * time.Second
)

type config struct {
	name      string
	share     float64
	horizon   time.Duration
	timeout   time.Duration
	instances int
	headroom  float64
	policy    OutagePolicy
	maxKeys   int
	near      float64
	reserve   float64
	shadow    bool
	events    func(Event)
	log       *slog.Logger
	version   int64
	limitOf   func(key string) Limit
	rules     *RuleSet // nil: there are none, and never will be
	algorithm Algorithm

	tierLimits []Limit  // besides the limit
	tiers      *tierSet // these, when they were checked; nil: none

	world inside.World // nil: the real one

	reservation time.Duration
	strict      bool
	alone       bool // it announces nothing

	instancesSet, headroomSet bool
}

// WithName names the limiter in keys, metrics and logs. Limiters of one name
// share their buckets, so give one name to one limit. Default: the text of the
// limit, so that different limits never share a bucket by accident. Two limits of
// the same text for different purposes need names.
func WithName(name string) Option { return func(c *config) { c.name = name } }

// WithLimitVersion says how new the limit is. While instances of one name are
// given different limits, as during a rolling deploy, the higher version wins for
// all of them, and among equal versions the smaller limit: the lower rate, then the
// smaller burst. An instance whose limit does not win applies the other one and
// reports [LimitMismatch]; when nobody has asked for the winner during one lease,
// the next one takes its place. From 0 to 2^53 − 1. Default: 0.
func WithLimitVersion(version int64) Option { return func(c *config) { c.version = version } }

// WithLimitByKey has f say the limit of each key; the limit that New is given
// stands in where f gives an invalid one, which is reported as [Misconfigured], or
// panics. [Unlimited] and [Blocked] are limits too. f is called when a key is first
// asked for, and again when it is asked for and a lease horizon has passed, under
// no lock and by whoever asks, who waits for it: have it look into memory, not into
// a database. When it says another limit than before, that applies at once, as with
// [Limiter.SetLimit]. Keys beyond [WithMaxKeys] ask f each time. Default: none.
func WithLimitByKey(f func(key string) Limit) Option { return func(c *config) { c.limitOf = f } }

// WithLocalShare caps what this instance takes of each key at s times the rate
// and s times the burst, 0 < s ≤ 1: a local token bucket that is charged when
// permits are granted. What it does not hold is refused here, whatever Redis would
// say ([SourcePrefilter]). s times the burst must be at least 1. Keys beyond
// [WithMaxKeys] have no share. Default: 1, no cap.
func WithLocalShare(s float64) Option { return func(c *config) { c.share = s } }

// WithLeaseHorizon sets for how long a lease should last the demand that is
// seen, from 10 ms to 5 s. Longer ones ask Redis less often and strand more
// permits when an instance dies. A key with little demand stretches it, up to
// 5 s. A lease ends after five horizons, at the earliest after 500 ms: with the
// default after 1 s, for a key with little demand after 25 s at the latest.
// Default: 200 ms.
func WithLeaseHorizon(d time.Duration) Option { return func(c *config) { c.horizon = d } }

// WithRemoteTimeout bounds how long a decision may wait for Redis, whatever the
// options of the Redis client and the context of the caller. An answer that
// takes longer counts as a failure, one that takes three quarters of it as slow.
// Give it at least three round trips: who asks while a message of the same key is
// under way waits for the next one. From 1 ms to less than half of what a lease
// lasts. Default: 50 ms.
func WithRemoteTimeout(d time.Duration) Option { return func(c *config) { c.timeout = d } }

// WithExpectedInstances says how many instances share the limit, for their
// fair parts in an outage that begins before Redis could tell how many there are:
// every instance announces itself there once a second. Default: 1, which lets each
// instance use the whole limit in such an outage; the Degraded event says so.
func WithExpectedInstances(n int) Option {
	return func(c *config) { c.instances, c.instancesSet = n, true }
}

// WithHeadroom scales the fair part of an instance in an outage: 0.8 stays a
// fifth below the limit. Default: 1.
func WithHeadroom(f float64) Option {
	return func(c *config) { c.headroom, c.headroomSet = f, true }
}

// WithOutagePolicy says what happens while Redis cannot be asked. [FailOpen]
// and [FailClosed] contradict WithExpectedInstances and WithHeadroom, which
// shape [Share]. Default: Share.
func WithOutagePolicy(p OutagePolicy) Option { return func(c *config) { c.policy = p } }

// WithReservation sets for how long what an instance may use is left to it when it
// is not heard of any more: it may be cut off from Redis and go on with its part of
// the limit. Meanwhile the others get that much less. An instance that was closed
// leaves at once, and one that was replaced is not missed. 0 leaves nothing, at most
// ten minutes; give all instances of a name the same. Default: 30 s.
func WithReservation(d time.Duration) Option { return func(c *config) { c.reservation = d } }

// WithStrictOutage never lets more through in an outage than the limit: an
// instance's bucket for the outage starts empty, and where its part of the burst is
// less than one request it refuses, while otherwise each instance may admit one at
// least. Default: the bucket starts with the instance's part of what was left at
// Redis.
func WithStrictOutage() Option { return func(c *config) { c.strict = true } }

// WithMaxKeys bounds how many keys are remembered here. While Redis is well,
// keys beyond the bound are decided by Redis one by one, without a lease, a local
// share or a queue of their own; in an outage they share a fixed number of
// buckets. Default: 100,000.
func WithMaxKeys(n int) Option { return func(c *config) { c.maxKeys = n } }

// WithEvents has f called for each [Event], one at a time and in order, on a
// goroutine of its own and under no lock. If f is slow, events wait in a
// bounded queue and then are dropped and counted, changes of the breaker first; if
// it panics, the event is lost, the panic is logged and the limiter goes on. A
// handler may still run when Close has returned. Default: none.
func WithEvents(f func(Event)) Option { return func(c *config) { c.events = f } }

// WithNearLimit sets which part of a key's burst must be gone, for all instances
// together, for a [NearLimit] event: 0 < f ≤ 1. Default: 0.8.
func WithNearLimit(f float64) Option { return func(c *config) { c.near = f } }

// WithLogger sets where transitions are logged; single requests never are.
// Default: [slog.Default].
func WithLogger(log *slog.Logger) Option { return func(c *config) { c.log = log } }

// RedisOptions returns the options recommended for the go-redis client of a
// limiter with the default remote time-out: one address for a single server,
// several for a cluster; set MasterName for Sentinel. Use them with
// [redis.NewUniversalClient]. See [RedisOptionsFor] for another time-out.
func RedisOptions(addrs ...string) *redis.UniversalOptions {
	return RedisOptionsFor(DefaultRemoteTimeout, addrs...)
}

// RedisOptionsFor is RedisOptions for a limiter with another [WithRemoteTimeout]:
// a client that gives up earlier would undo it.
func RedisOptionsFor(timeout time.Duration, addrs ...string) *redis.UniversalOptions {
	return remote.Options(timeout, addrs...)
}

const (
	shortestHorizon = 10 * time.Millisecond
	longestHorizon  = 5 * time.Second
	shortestLease   = 500 * time.Millisecond

	longestReservation = 10 * time.Minute
	horizonsOfLease    = 5
)

// leaseFor is how long a lease of a horizon lasts.
func leaseFor(horizon time.Duration) time.Duration {
	return max(shortestLease, horizonsOfLease*horizon)
}

func newConfig(options []Option) config {
	c := config{
		share:     DefaultLocalShare,
		horizon:   DefaultLeaseHorizon,
		timeout:   DefaultRemoteTimeout,
		instances: DefaultExpectedInstances,
		headroom:  DefaultHeadroom,
		maxKeys:   DefaultMaxKeys,
		near:      DefaultNearLimit,
		reserve:   DefaultPriorityReserve,

		reservation: DefaultReservation,
	}
	for _, o := range options {
		if o != nil {
			o(&c)
		}
	}
	if c.log == nil {
		c.log = slog.Default()
	}
	return c
}

// validate checks everything that New was given besides the limit itself.
func (c *config) validate() error {
	bad := func(field, format string, args ...any) error {
		return &ConfigError{Field: field, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case !(c.share > 0 && c.share <= 1):
		return bad("WithLocalShare", "must be above 0 and at most 1, not %v", c.share)
	case c.horizon < shortestHorizon || c.horizon > longestHorizon:
		return bad("WithLeaseHorizon", "must be from %v to %v, not %v", shortestHorizon, longestHorizon, c.horizon)
	case c.timeout < time.Millisecond:
		return bad("WithRemoteTimeout", "must be at least 1ms, not %v", c.timeout)
	case c.timeout >= leaseFor(c.horizon)/2:
		return bad("WithRemoteTimeout", "%v contradicts a lease of %v: it must be less than half of it", c.timeout, leaseFor(c.horizon))
	case c.instances < 1:
		return bad("WithExpectedInstances", "must be at least 1, not %d", c.instances)
	case !(c.headroom > 0) || math.IsInf(c.headroom, 0):
		return bad("WithHeadroom", "must be positive and finite, not %v", c.headroom)
	case c.policy > FailClosed:
		return bad("WithOutagePolicy", "unknown policy %d", c.policy)
	case c.policy != Share && c.instancesSet:
		return bad("WithExpectedInstances", "contradicts WithOutagePolicy: it shapes the Share policy only")
	case c.policy != Share && c.headroomSet:
		return bad("WithHeadroom", "contradicts WithOutagePolicy: it shapes the Share policy only")
	case c.reservation < 0 || c.reservation > longestReservation:
		return bad("WithReservation", "must be from 0 to %v, not %v", longestReservation, c.reservation)
	case c.policy != Share && c.strict:
		return bad("WithStrictOutage", "contradicts WithOutagePolicy: it shapes the Share policy only")
	case c.version < 0 || c.version >= exact:
		return bad("WithLimitVersion", "must be from 0 to 2^53 - 1, not %d", c.version)
	case !(c.near > 0 && c.near <= 1):
		return bad("WithNearLimit", "must be above 0 and at most 1, not %v", c.near)
	case c.rules != nil && c.limitOf != nil:
		return bad("WithRules", "contradicts WithLimitByKey: one of them names the limit of a key")
	case c.algorithm >= algorithms:
		return bad("WithAlgorithm", "unknown %v", c.algorithm)
	case !(c.reserve >= 0 && c.reserve < 1):
		return bad("WithPriorityReserve", "must be at least 0 and below 1, not %v", c.reserve)
	case c.maxKeys < 1:
		return bad("WithMaxKeys", "must be at least 1, not %d", c.maxKeys)
	}
	return nil
}
