package peers

import (
	"context"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
	"github.com/ulule/limiter/v3"
	redisstore "github.com/ulule/limiter/v3/drivers/store/redis"
)

const goRedis = "github.com/redis/go-redis/v9"

var redisRate = Peer{
	Name: "redis_rate", Module: "github.com/go-redis/redis_rate/v10", Client: goRedis, Way: Asks, Counts: "GCRA in a script",
	Open: func(s Setup) (Limiter, error) {
		rdb := dial(s.Addr)
		lim := redis_rate.NewLimiter(rdb)
		limit := redis_rate.Limit{Rate: s.Rate, Burst: s.Burst, Period: s.Period}
		return decider{
			allow: func(ctx context.Context, key string) (bool, error) {
				res, err := lim.Allow(ctx, s.Name+key, limit)
				return err == nil && res.Allowed > 0, err
			},
			close: rdb.Close,
		}, nil
	},
}

var ulule = Peer{
	Name: "ulule/limiter", Module: "github.com/ulule/limiter/v3", Client: goRedis, Way: Asks, Counts: "fixed window in a script",
	Open: func(s Setup) (Limiter, error) {
		rdb := dial(s.Addr)
		store, err := redisstore.NewStoreWithOptions(rdb, limiter.StoreOptions{Prefix: s.Name})
		if err != nil {
			_ = rdb.Close()
			return nil, err
		}
		lim := limiter.New(store, limiter.Rate{Period: s.Period, Limit: int64(s.Rate)})
		return decider{
			allow: func(ctx context.Context, key string) (bool, error) {
				res, err := lim.Get(ctx, key)
				return err == nil && !res.Reached, err
			},
			close: rdb.Close,
		}, nil
	},
}

var throttle = Peer{
	Name: "throttled", Module: "github.com/throttled/throttled/v2", Client: goRedis, Way: Asks, Counts: "GCRA, read and compare-and-swap",
	Open: func(s Setup) (Limiter, error) {
		rdb := dial(s.Addr)
		store, err := goredisstore.NewCtx(rdb, s.Name)
		if err != nil {
			_ = rdb.Close()
			return nil, err
		}
		// It works in nanoseconds, and its MaxBurst is beside the first.
		rate := throttled.PerDuration(1, max(s.Period/time.Duration(s.Rate), 1))
		lim, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: rate, MaxBurst: s.Burst - 1})
		if err != nil {
			_ = rdb.Close()
			return nil, err
		}
		return decider{
			allow: func(ctx context.Context, key string) (bool, error) {
				limited, _, err := lim.RateLimitCtx(ctx, key, 1)
				return err == nil && !limited, err
			},
			close: rdb.Close,
		}, nil
	},
}
