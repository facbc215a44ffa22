package peers

import (
	"context"
	"errors"
	"strconv"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

// plainScript is the least that is exact: one key, one read, one write. It is a
// virtual schedule: the key holds when the bucket is full again, in microseconds.
// ARGV: what a token takes to come back, and what a whole burst takes.
const plainScript = `
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local full = tonumber(redis.call('GET', KEYS[1]) or now)
if full < now then full = now end
full = full + ARGV[1]
if full - now > tonumber(ARGV[2]) then return 0 end
redis.call('SET', KEYS[1], string.format('%.0f', full), 'PX', math.ceil((full - now) / 1000) + 1)
return 1`

// plainArgs are its arguments.
func plainArgs(s Setup) (token, burst string) {
	us := s.Period.Seconds() * 1e6 / float64(s.Rate)
	return strconv.FormatFloat(us, 'f', -1, 64), strconv.FormatFloat(us*float64(s.Burst), 'f', -1, 64)
}

const counted = "GCRA in a script"

var plain = Peer{
	Name: "plain script, go-redis", Module: goRedis, Client: goRedis, Way: Asks, Counts: counted,
	Open: func(s Setup) (Limiter, error) {
		rdb := dial(s.Addr)
		return overGoRedis(s, rdb, rdb.Close), nil
	},
}

var plainAuto = Peer{
	Name: "plain script, AutoPipeline", Module: goRedis, Client: goRedis, Way: Asks, Counts: counted,
	Open: func(s Setup) (Limiter, error) {
		rdb := dial(s.Addr)
		auto, err := rdb.AutoPipeline()
		if err != nil {
			return nil, errors.Join(err, rdb.Close())
		}
		return overGoRedis(s, auto, func() error { return errors.Join(auto.Close(), rdb.Close()) }), nil
	},
}

func overGoRedis(s Setup, to redis.Scripter, end func() error) Limiter {
	script := redis.NewScript(plainScript)
	token, burst := plainArgs(s)
	return decider{
		allow: func(ctx context.Context, key string) (bool, error) {
			n, err := script.Run(ctx, to, []string{s.Name + key}, token, burst).Int()
			return n == 1, err
		},
		close: end,
	}
}

var plainRueidis = Peer{
	Name: "plain script, rueidis", Module: "github.com/redis/rueidis", Client: "github.com/redis/rueidis", Way: Asks, Counts: counted,
	Open: func(s Setup) (Limiter, error) {
		client, err := rueidis.NewClient(rueidis.ClientOption{
			InitAddress: []string{s.Addr}, DisableCache: true, ForceSingleClient: true,
		})
		if err != nil {
			return nil, err
		}
		script := rueidis.NewLuaScript(plainScript)
		token, burst := plainArgs(s)
		return decider{
			allow: func(ctx context.Context, key string) (bool, error) {
				n, err := script.Exec(ctx, client, []string{s.Name + key}, []string{token, burst}).AsInt64()
				return n == 1, err
			},
			close: func() error { client.Close(); return nil },
		}, nil
	},
}
