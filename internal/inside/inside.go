// Package inside is the door through which this module's own simulator runs
// limiters on a clock, a network and a chance that it makes up itself. Package
// hybrid opens it; nobody outside of the module can.
package inside

import (
	"time"

	"github.com/resilient-go/limiter/remote"
)

// A World is what a limiter finds around it. None of its methods is called
// concurrently, and none may call back before it returns.
type World interface {
	// Now is the instant of the limiter's clock, in nanoseconds.
	Now() int64
	// AfterFunc is time.AfterFunc.
	AfterFunc(d time.Duration, f func()) Timer
	// Float64 is a random number in [0, 1).
	Float64() float64
	// Acquire sends a message to the root and has done called with the answer or an
	// error, as remote.Client does.
	Acquire(m *remote.Message, done func(remote.Answer, error)) error
	// Closed reports whether the circuit breaker lets calls pass.
	Closed() bool
}

// A Timer is what of a time.Timer a limiter uses.
type Timer interface {
	Stop() bool
	Reset(d time.Duration) bool
}

// A Decision is the outcome of a request.
type Decision struct {
	Allowed    bool
	Source     string
	RetryAfter time.Duration
	Err        error
}

// A Request is one that waits for its decision.
type Request interface {
	// Decided gives the decision once it is there.
	Decided() (Decision, bool)
	// Leave ends the wait, as at the remote time-out, or as at the end of the
	// caller's context if it gave up.
	Leave(gaveUp bool) Decision
}

// A Holding is what a limiter holds of a key.
type Holding struct {
	Worth  int64 // micro-tokens that could be spent now; see local.Lease
	Tokens int64 // held, though they may have ended
	Part   int64 // micro-tokens held besides
	Rate   int64 // micro-tokens per second
	Paused bool  // a message was sent, and no answer has come
}

// What package hybrid puts here. The limiter is a *hybrid.Limiter.
var (
	// Option makes the hybrid.Option that has a limiter live in a world.
	Option func(World) any
	// Ask begins a request, patient as that of Wait or not: nil if it is decided.
	Ask func(limiter any, key string, n int, patient bool) (Decision, Request)
	// Held tells of the lease of a key.
	Held func(limiter any, key string) Holding
	// BreakerChanged tells a limiter that Closed says something else.
	BreakerChanged func(limiter any)
)
