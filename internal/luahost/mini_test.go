package luahost

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/internal/redistest"
	"github.com/resilient-go/limiter/lua"
)

// miniPeer is miniredis in a bubble. The scripts run as they are.
type miniPeer struct {
	served
	mini *miniredis.Miniredis
}

func newMini(t testing.TB) miniPeer {
	m := redistest.Bubble(t)
	return miniPeer{served{m.Client()}, m.Miniredis()}
}

func (p miniPeer) set(now int64)   { p.mini.SetTime(time.UnixMicro(now)) }
func (p miniPeer) drop(key string) { p.rdb.Del(context.Background(), key) }

func (p miniPeer) eval(s *lua.Script, key string, args []any) (any, error) {
	v, err := p.rdb.EvalSha(context.Background(), s.SHA(), []string{key}, args...).Result()
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		return p.rdb.Eval(context.Background(), s.Text(), []string{key}, args...).Result()
	}
	return v, err
}

func (p miniPeer) ttl(key string) int64 {
	d := p.rdb.PTTL(context.Background(), key).Val()
	if d < 0 {
		return int64(d)
	}
	return d.Milliseconds()
}

func TestCoursesAsOnMiniredis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { courses(t, newMini(t), 20) })
}
