package lua_test

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/internal/luahost"
	"github.com/resilient-go/limiter/lua"
)

// A hostServer runs the scripts without a server, many thousand times a second.
type hostServer struct {
	redis.UniversalClient // nobody's: only what a world asks for is there
	host                  *luahost.Host
	now                   int64
}

func newHost() *hostServer {
	s := &hostServer{}
	s.host = luahost.New(func() int64 { return s.now })
	return s
}

func (s *hostServer) client() redis.UniversalClient { return s }
func (s *hostServer) set(now int64)                 { s.now = now }
func (s *hostServer) persist(string)                {}

func (s *hostServer) eval(script *lua.Script, key string, args []any) (any, error) {
	return s.host.Eval(script, key, args)
}

func (s *hostServer) ttl(key string) int64 {
	d := s.host.TTL(key)
	if d < 0 {
		return int64(d)
	}
	return d.Milliseconds()
}

// HGetAll and Del are what a world asks of a client.
func (s *hostServer) HGetAll(ctx context.Context, key string) *redis.MapStringStringCmd {
	cmd := redis.NewMapStringStringCmd(ctx)
	cmd.SetVal(s.host.Fields(key))
	return cmd
}

func (s *hostServer) Del(ctx context.Context, keys ...string) *redis.IntCmd {
	for _, key := range keys {
		s.host.Drop(key)
	}
	return redis.NewIntCmd(ctx)
}
