package hybrid_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// The conformance suite: what every algorithm must do, in files of this prefix.
var everyAlgorithm = []hybrid.Algorithm{
	hybrid.TokenBucket, hybrid.LeakyBucket, hybrid.FixedWindow, hybrid.SlidingLog, hybrid.RollingWindow,
}

// A redisServer is any server of redistest.
type redisServer interface {
	redistest.Switches
	Client(...func(*redis.Options)) *redis.Client
}

// conform runs f for each algorithm in a bubble.
func conform(t *testing.T, f func(t *testing.T, r *redistest.Mini, algo hybrid.Algorithm)) {
	t.Helper()
	for _, algo := range everyAlgorithm {
		t.Run(algo.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(t, redistest.Bubble(t), algo) })
		})
	}
}

// conformReal runs f for each algorithm on one redis-server.
func conformReal(t *testing.T, f func(t *testing.T, r *redistest.Redis, algo hybrid.Algorithm)) {
	t.Helper()
	r := redistest.Server(t)
	for _, algo := range everyAlgorithm {
		t.Run(algo.String(), func(t *testing.T) { f(t, r, algo) })
	}
}

// most is the most that was admitted in any window of a length, its end excluded.
func (r *record) most(window time.Duration) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	most, sum, first := 0, 0, 0
	for i, n := range r.n {
		sum += n
		for !r.at[first].Add(window).After(r.at[i]) {
			sum -= r.n[first]
			first++
		}
		most = max(most, sum)
	}
	return most
}

// keeps fails the test unless a record keeps what the algorithm states of every
// window.
func keeps(t testing.TB, algo hybrid.Algorithm, limit hybrid.Limit, r *record) {
	t.Helper()
	switch n, period := limit.Count(), limit.Period(); algo {
	case hybrid.TokenBucket, hybrid.LeakyBucket:
		r.inBound(t, perSecond(limit), float64(limit.Burst()))
	case hybrid.FixedWindow:
		for k := 1; k <= 5; k++ { // so many windows touch at most one more
			if got := r.most(time.Duration(k) * period); got > (k+1)*n {
				t.Errorf("%d were admitted within %d periods, want at most %d", got, k, (k+1)*n)
			}
		}
	case hybrid.SlidingLog:
		if got := r.most(period - time.Microsecond); got > n { // Redis counts whole ones
			t.Errorf("%d were admitted within a period, want at most %d", got, n)
		}
	case hybrid.RollingWindow:
		if got := r.most(period*9/10 - time.Microsecond); got > n {
			t.Errorf("%d were admitted within nine tenths of a period, want at most %d", got, n)
		}
	}
}

// clients are instances with one limit.
func clients(t testing.TB, r redisServer, n int, limit hybrid.Limit, options ...hybrid.Option) []*hybrid.Limiter {
	t.Helper()
	lims := make([]*hybrid.Limiter, n)
	for i := range lims {
		lims[i] = start(t, r, limit, options...)
	}
	return lims
}

// anyKey is a key that no other test of a shared server has.
func anyKey(t testing.TB) string { return fmt.Sprintf("%s %d", t.Name(), rand.Uint64()) }

// contextFor has a deadline after some time, cancelAfter is cancelled then without one.
func contextFor(t testing.TB, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}

func cancelAfter(t testing.TB, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(d, cancel)
	return ctx, cancel
}

func isTooLate(err error) bool { return errors.Is(err, hybrid.ErrWouldExceedDeadline) }

// newClient is a client of a server in another process.
func newClient(addr string) *redis.Client {
	return redis.NewClient(hybrid.RedisOptionsFor(time.Second, addr).Simple())
}
