package remote

import (
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Options returns the go-redis options recommended for a limiter, for a single
// server (one address), a cluster (several) or Sentinel (set MasterName). The
// defaults of go-redis suit an application that would rather wait than fail: a
// call into a hung server takes 5 to 20 s there. A limiter would rather know.
//
// timeout is the limiter's remote time-out. Give the limiter a client of its
// own: the connections are few and impatient.
func Options(timeout time.Duration, addrs ...string) *redis.UniversalOptions {
	return &redis.UniversalOptions{
		Addrs:           addrs,
		Protocol:        2,    // a handshake of one round trip, and it passes every proxy
		DisableIdentity: true, // likewise
		MaintNotificationsConfig: &maintnotifications.Config{
			Mode: maintnotifications.ModeDisabled,
		},
		MaxRetries:            -1, // a script is never sent twice; ours say so themselves
		DialTimeout:           timeout,
		DialerRetries:         1,
		ReadTimeout:           timeout,
		WriteTimeout:          timeout,
		ContextTimeoutEnabled: true,
		// go-redis stops dialling for a second after PoolSize failed dials, so that
		// the pool is nominally large and MaxActiveConns is the true bound.
		PoolSize:           64,
		MaxActiveConns:     maxInFlight + maxProbes,
		MaxConcurrentDials: 2,
		PoolTimeout:        timeout,
		MaxIdleConns:       2, // fewer than failures that open the breaker: stale ones cannot
		ConnMaxIdleTime:    4 * time.Minute,
		PipelinePoolSize:   -1,
	}
}
