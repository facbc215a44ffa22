package hybrid

import (
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/resilient-go/limiter/local"
	"github.com/resilient-go/limiter/lua"
	"github.com/resilient-go/limiter/remote"
)

// An Algorithm is what a limit means. All keep it for all instances together and
// behind the same calls; docs/algorithms.md compares them.
type Algorithm uint8

const (
	// TokenBucket starts full and gains n tokens per period up to its burst: at most
	// burst + w·n/period in a window of length w. Decided from leases. The default.
	TokenBucket Algorithm = iota
	// LeakyBucket is a queue of at most burst tokens that drains at n per period.
	// Take is admitted while there is room, as from a token bucket, and refused when
	// it would overflow. Wait takes a turn in the outflow and comes back when that has
	// come, so that those who wait pass one by one at the rate, whichever instances
	// they wait on; in an outage they pass as those of a token bucket do.
	LeakyBucket
	// FixedWindow admits n tokens per window; a window begins with the first request
	// after the last one's end. Across an end up to 2n may pass in a moment. Decided
	// from leases, which end with their window.
	FixedWindow
	// SlidingLog admits at most n tokens in every window of a period, by a list of
	// what was admitted when; n is at most 10,000. Decided by Redis.
	SlidingLog
	// RollingWindow estimates that by ten counters: at most n tokens in every window
	// of nine tenths of a period, and steady demand gets n per period. Decided by
	// Redis.
	RollingWindow

	algorithms = RollingWindow + 1
)

var algorithmNames = [algorithms]string{"token bucket", "leaky bucket", "fixed window", "sliding log", "rolling window"}

// String is the name in two words.
func (a Algorithm) String() string {
	if a < algorithms {
		return algorithmNames[a]
	}
	return fmt.Sprintf("algorithm %d", uint8(a))
}

// WithAlgorithm sets what the limit means. Those that count in windows take a limit
// without a burst of its own, of a period of a millisecond at least; a sliding log
// takes one of 10,000 per period at most. Limiters of one name and another
// algorithm do not share their keys. Default: [TokenBucket].
func WithAlgorithm(a Algorithm) Option { return func(c *config) { c.algorithm = a } }

// windowed reports whether the algorithm counts n per period: a burst means nothing.
func (a Algorithm) windowed() bool { return a >= FixedWindow }

// leased reports whether permits are lent.
func (a Algorithm) leased() bool { return a == TokenBucket || a == FixedWindow }

// scripts are what Redis runs.
func (c *config) scripts() *lua.Algorithm {
	if c.tiers != nil {
		return lua.Tiers
	}
	return [...]*lua.Algorithm{lua.TokenBucket, lua.LeakyBucket, lua.FixedWindow, lua.SlidingLog, lua.RollingWindow}[c.algorithm]
}

// redisKey names what Redis keeps of a key.
func (c *config) redisKey(key string) string {
	return remote.Key(c.name, key) + c.scripts().Suffix
}

// shortestWindow is the least period of a window: round trips are not much shorter.
const shortestWindow = time.Millisecond

// suits checks a limit for the algorithm.
func (a Algorithm) suits(limit Limit) error {
	bad := func(format string, args ...any) error {
		return &ConfigError{Field: "WithAlgorithm", Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case !a.windowed():
		return nil
	case limit.burst != limit.n:
		return bad("a %v admits n per period: a burst has no meaning for it, and %v has one", a, limit)
	case limit.period < shortestWindow:
		return bad("a %v has a period of at least %v, and %v has a shorter one", a, shortestWindow, limit)
	case a == SlidingLog && limit.n > lua.MaxLog:
		return bad("a %v lists what it admits: at most %d per period, not %d; take a %v", a, lua.MaxLog, limit.n, RollingWindow)
	default:
		return nil
	}
}

// ofUnits is the limit that another instance asked for.
func (a Algorithm) ofUnits(r remote.Limit) Limit {
	burst := max(1, r.Burst/local.Unit)
	if !a.windowed() {
		// Num micro-tokens per Den µs are Num tokens per Den seconds.
		return Limit{n: r.Num, period: time.Duration(r.Den) * time.Second, burst: burst}
	}
	// The period is what the burst takes: Burst·Den/Num µs, which is below 2^52.
	hi, lo := bits.Mul64(uint64(r.Burst), uint64(r.Den))
	period := uint64(math.MaxInt64 / 1000)
	if hi < uint64(r.Num) {
		period, _ = bits.Div64(hi, lo, uint64(r.Num))
	}
	return Limit{n: burst, period: time.Duration(min(period, math.MaxInt64/1000)) * time.Microsecond, burst: burst}
}
