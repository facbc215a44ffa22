package remote

import (
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// patience is how many remote time-outs a client's own may be: a call that was left
// behind holds its connection for as long.
const patience = 10

// Advice names the options of a client that make an outage harder than it need be,
// each with the reason: time-outs far above the limiter's, retries, few connections.
// It is empty for the options that [Options] recommends, and for kinds of clients
// that do not tell theirs.
func Advice(rdb redis.UniversalClient, timeout time.Duration) []string {
	var retries, pool int
	var times [3]time.Duration // to dial, to read, to write
	switch c := rdb.(type) {
	case *redis.Client:
		o := c.Options()
		retries, pool, times = o.MaxRetries, o.PoolSize, [3]time.Duration{o.DialTimeout, o.ReadTimeout, o.WriteTimeout}
	case *redis.ClusterClient:
		o := c.Options()
		retries, pool, times = o.MaxRetries, o.PoolSize, [3]time.Duration{o.DialTimeout, o.ReadTimeout, o.WriteTimeout}
	case *redis.Ring:
		o := c.Options()
		retries, pool, times = o.MaxRetries, o.PoolSize, [3]time.Duration{o.DialTimeout, o.ReadTimeout, o.WriteTimeout}
	default:
		return nil
	}
	var all []string
	for i, name := range []string{"DialTimeout", "ReadTimeout", "WriteTimeout"} {
		switch d := times[i]; {
		case d <= 0:
			all = append(all, name+" is off: a call that hangs holds its connection for ever")
		case d > patience*timeout:
			all = append(all, fmt.Sprintf("%s %v is more than %d times the remote time-out of %v: a call that hangs holds its connection for so long",
				name, d, patience, timeout))
		}
	}
	if retries > 0 {
		all = append(all, fmt.Sprintf("MaxRetries %d: each probe of a server that is gone dials so many times more", retries))
	}
	if pool > 0 && pool < maxInFlight+maxProbes {
		all = append(all, fmt.Sprintf("PoolSize %d: up to %d calls are under way at once, and the rest wait for a connection", pool, maxInFlight+maxProbes))
	}
	return slices.Clip(all)
}
