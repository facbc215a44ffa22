package peers

import (
	"context"
	"sync"

	"github.com/zeromicro/go-zero/core/limit"
	"github.com/zeromicro/go-zero/core/logx"
	"github.com/zeromicro/go-zero/core/stat"
	"github.com/zeromicro/go-zero/core/stores/redis"
)

const goZero = "github.com/zeromicro/go-zero"

// quiet turns off the log that go-zero keeps for all of the process.
var quiet = sync.OnceFunc(func() {
	logx.Disable()
	stat.DisableLog()
})

// Its Redis client is shared by all that use the address, and stays open.
var zeroToken = Peer{
	Name: "go-zero TokenLimiter", Module: goZero, Client: goRedis, Way: Asks, Counts: "token bucket in a script, whole seconds",
	Open: func(s Setup) (Limiter, error) {
		quiet()
		rdb := redis.New(s.Addr)
		limiters := each[*limit.TokenLimiter]{make: func(key string) *limit.TokenLimiter {
			// It knows rates per second only.
			return limit.NewTokenLimiter(max(1, int(float64(s.Rate)/s.Period.Seconds())), s.Burst, rdb, s.Name+key)
		}}
		return decider{allow: func(ctx context.Context, key string) (bool, error) {
			return limiters.get(key).AllowCtx(ctx), nil // it tells no errors
		}}, nil
	},
}

var zeroPeriod = Peer{
	Name: "go-zero PeriodLimit", Module: goZero, Client: goRedis, Way: Asks, Counts: "fixed window in a script",
	Open: func(s Setup) (Limiter, error) {
		quiet()
		lim := limit.NewPeriodLimit(int(s.Period.Seconds()), s.Rate, redis.New(s.Addr), s.Name)
		return decider{allow: func(ctx context.Context, key string) (bool, error) {
			state, err := lim.TakeCtx(ctx, key)
			return state == limit.Allowed || state == limit.HitQuota, err
		}}, nil
	},
}
