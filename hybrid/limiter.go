package hybrid

import (
	"crypto/rand"
	"errors"
	"log/slog"
	mathrand "math/rand/v2"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/breaker"
	"github.com/resilient-go/limiter/internal/inside"
	"github.com/resilient-go/limiter/local"
	"github.com/resilient-go/limiter/remote"
)

// A Limiter keeps one limit for any number of keys across all instances that
// use the same Redis and name. Make one with [New]; the zero Limiter is not usable.
// It may be used by many goroutines at once; end it with [Limiter.Close].
type Limiter struct {
	cfg     config
	reserve int64                    // thousandths of a bucket that low priority leaves alone
	terms   atomic.Pointer[terms]    // of all keys without a limit of their own
	rules   atomic.Pointer[ruleBook] // nil: there can be none
	limitMu sync.Mutex               // held by the one who changes terms or rules

	rdb    redis.UniversalClient
	holder string // names this process start at Redis
	lanes  lanes
	keys   *local.Table[*entry]
	spill  [64]fallback // in an outage, for keys that are not in the table
	epoch  time.Time    // instants count from here, on the monotonic clock
	seq    atomic.Uint64
	rtt    atomic.Int64 // of late, in nanoseconds

	counts   counts
	drill    drill
	events   eventQueue
	reminder reminder
	sweeper  sweeper
	members  members
	watch    watch

	closed   atomic.Bool
	closing  chan struct{} // closed when Close begins: those who wait leave
	ended    chan struct{} // closed when Close has done its work
	endErr   error         // valid then
	flights  tally         // messages under way
	stranded atomic.Int64  // tokens that could not be given back
}

// New returns a limiter on rdb: a single server, Sentinel or Cluster client. On a
// Cluster each master has a breaker of its own, so that one that is lost takes its own
// keys only. A Ring is accepted, but its view of its shards can change under a bucket,
// and it has one breaker for all.
//
// New does no I/O and works while Redis is down. All limiters of one name on one
// Redis share their buckets, whatever process they live in. The client remains
// the caller's: the limiter never closes it, and its options decide nothing
// about how long a decision may take. See [RedisOptions] for good ones.
//
// The error is a [*ConfigError], or that of [RuleSet.Validate] for [WithRules].
func New(rdb redis.UniversalClient, limit Limit, options ...Option) (*Limiter, error) {
	c := newConfig(options)
	if isNil(rdb) && c.world == nil {
		return nil, &ConfigError{Field: "New", Reason: "the Redis client is nil"}
	}
	if c.world == nil && isURL(rdb) {
		return nil, &ConfigError{Field: "New", Reason: "an address of the Redis client is a URL; want host:port, as redis.ParseURL reads it from one"}
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	tiers, err := c.tiersOf()
	if err != nil {
		return nil, err
	}
	c.tiers = tiers
	t, err := newTerms(&c, limit, c.version)
	if err != nil {
		return nil, err
	}
	var book *ruleBook
	if c.rules != nil {
		if book, err = newRuleBook(&c, *c.rules, c.version); err != nil {
			return nil, err
		}
	}
	if c.name == "" {
		c.name = limit.String() + c.tiersName()
	}
	l := &Limiter{
		cfg:     c,
		reserve: c.thousandths(),
		rdb:     rdb,
		holder:  rand.Text()[:16],
		keys:    local.NewTable[*entry](c.maxKeys),
		epoch:   time.Now(),
		events:  eventQueue{handle: c.events, log: c.log.With(slog.String("limiter", c.name))},
		watch:   watch{wall: time.Now},
		closing: make(chan struct{}),
		ended:   make(chan struct{}),
	}
	l.terms.Store(t)
	l.rules.Store(book)
	home := &lane{l: l, root: elsewhere{c.world}, gate: weather{c.world}}
	if c.world == nil {
		l.lanes.masters = remote.NewMasters(rdb)
		home = l.newLane("", c.redisKey("probe"))
		if advice := remote.Advice(rdb, c.timeout); len(advice) > 0 {
			l.events.log.Warn("rate limiter client options", slog.Any("advice", advice))
		}
	}
	l.lanes.list.Store(&[]*lane{home})
	return l, nil
}

// Name is the limiter's name, see [WithName].
func (l *Limiter) Name() string { return l.cfg.name }

// Limit is the limit that this instance was given last.
func (l *Limiter) Limit() Limit { return l.terms.Load().limit }

// up reports whether Redis may be asked about a key.
func (l *Limiter) up(e *entry) bool { return e.lane.Load().up() }

// now is the instant of the moment: nanoseconds since the limiter was made.
func (l *Limiter) now() int64 {
	if l.cfg.world != nil {
		return l.cfg.world.Now()
	}
	return int64(time.Since(l.epoch))
}

// afterFunc is time.AfterFunc.
func (l *Limiter) afterFunc(d time.Duration, f func()) inside.Timer {
	if l.cfg.world != nil {
		return l.cfg.world.AfterFunc(d, f)
	}
	return time.AfterFunc(d, f)
}

// chance is a random number in [0, 1).
func (l *Limiter) chance() float64 {
	if l.cfg.world != nil {
		return l.cfg.world.Float64()
	}
	return mathrand.Float64()
}

// isNil sees through a nil pointer in the interface.
func isNil(rdb redis.UniversalClient) bool {
	v := reflect.ValueOf(rdb)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// errTimeout: the answer did not come while its caller waited.
var errTimeout = errors.New("hybrid: no answer within the remote time-out")

// isOutage tells a fault of Redis from the caller's own errors.
func isOutage(err error) bool {
	var fault *remote.Error
	return errors.As(err, &fault) || errors.Is(err, breaker.ErrOpen) || errors.Is(err, errTimeout)
}
