package main

import (
	"fmt"
	"os/exec"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// A box is a server with switches.
type box interface {
	redistest.Switches
	Client(opts ...func(*redis.Options)) *redis.Client
}

// connect starts a Redis and says what will happen to it.
func connect(owner *redistest.Owner, kind string) (where string, client func() redis.UniversalClient, steps []step, err error) {
	if kind == "auto" {
		kind = "mini"
		if _, err := exec.LookPath("redis-server"); err == nil {
			kind = "server"
		}
	}
	err = owner.Try(func() {
		switch kind {
		case "mini":
			b := redistest.MiniTCP(owner)
			where, client, steps = "miniredis, inside this program", clients(b), killAndFreeze(b)
		case "server":
			b := redistest.Server(owner)
			where, client, steps = "a redis-server process", clients(b), killAndFreeze(b)
		case "sentinel":
			set := redistest.Sentinel(owner)
			where = "a master, a replica and three sentinels"
			client = func() redis.UniversalClient {
				return set.Client(func(o *redis.FailoverOptions) {
					wide := hybrid.RedisOptions(o.SentinelAddrs...)
					wide.MasterName = o.MasterName
					*o = *wide.Failover()
				})
			}
			steps = []step{{rows: 4}, {"the master is killed", set.Kill, 12}}
		}
	})
	if err == nil && steps == nil {
		err = fmt.Errorf("-redis %s: want auto, server, mini or sentinel", kind)
	}
	return where, client, steps, err
}

// clients makes clients with the options that suit a limiter.
func clients(b box) func() redis.UniversalClient {
	return func() redis.UniversalClient {
		return b.Client(func(o *redis.Options) {
			wide := hybrid.RedisOptions(o.Addr)
			wide.PoolSize, wide.Dialer = o.PoolSize, o.Dialer
			*o = *wide.Simple()
		})
	}
}

func killAndFreeze(b box) []step {
	return []step{
		{rows: 4},
		{"Redis is killed", b.Kill, 4},
		{"Redis is started with its data", b.RestartWithData, 4},
		{"Redis is frozen: connections stay, nothing is answered", b.Freeze, 4},
		{"Redis goes on", b.Thaw, 6},
	}
}
