// Package peers has the limiters that are compared, each behind its own public API
// and as its documentation shows it.
package peers

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Limiter decides for many goroutines at once. An error is no decision.
type Limiter interface {
	Allow(ctx context.Context, key string) (bool, error)
	// Degraded is how many decisions were made without Redis because it could not be
	// asked in time, as far as the limiter tells.
	Degraded() uint64
	Close() error
}

// Setup is what a limiter is made from.
type Setup struct {
	// Addr is the Redis server's.
	Addr string
	// Name goes in front of keys: limiters of one name share their state in Redis.
	Name string
	// Rate is the limit of all instances per Period, and Burst what may pass at once.
	// Limiters that count in windows have no burst: they admit Rate per Period.
	Rate, Burst int
	Period      time.Duration
	// Instances share the limit.
	Instances int
}

// A Way is how a limiter keeps one limit for several instances.
type Way string

// The ways.
const (
	Local  Way = "in process"     // each instance alone
	Asks   Way = "asks Redis"     // for each decision
	Leases Way = "leases permits" // from Redis, ahead of the decisions
)

// A Peer is one of the compared.
type Peer struct {
	Name string
	// Module is the path of its Go module, and Client that of its Redis client, for
	// the versions.
	Module, Client string
	Way            Way
	// Counts says how: what a burst is to it.
	Counts string
	Open   func(Setup) (Limiter, error)
	// Out says why it has no part in a scenario, by the letter.
	Out map[string]string
}

// dial makes a go-redis client with default options, as a user's would be.
func dial(addr string) *redis.Client { return redis.NewClient(&redis.Options{Addr: addr}) }

// fit bounds a number to what a limiter can express.
func fit(n, most int) int { return max(1, min(n, most)) }

// each keeps a limiter of one key per key, as users of such a limiter do.
type each[T any] struct {
	m    sync.Map
	make func(key string) T
}

func (e *each[T]) get(key string) T {
	if v, ok := e.m.Load(key); ok {
		return v.(T)
	}
	v, _ := e.m.LoadOrStore(key, e.make(key))
	return v.(T)
}

// A decider is a Limiter of two functions.
type decider struct {
	allow    func(ctx context.Context, key string) (bool, error)
	degraded func() uint64
	close    func() error
}

func (d decider) Allow(ctx context.Context, key string) (bool, error) { return d.allow(ctx, key) }

func (d decider) Degraded() uint64 {
	if d.degraded == nil {
		return 0
	}
	return d.degraded()
}

func (d decider) Close() error {
	if d.close == nil {
		return nil
	}
	return d.close()
}
