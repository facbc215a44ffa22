package luahost

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/internal/redistest"
	"github.com/resilient-go/limiter/lua"
)

// realPeer is a redis-server. Its clock cannot be set, so the scripts get TIME from
// the test, and what they say to PEXPIRE is noted as the field of another hash.
type realPeer struct {
	served
	now  int64
	ends map[string]int64 // in microseconds, by key
	made map[string]*redis.Script
}

const shim = `local server = redis
local redis = { error_reply = server.error_reply, call = function(command, key, ...)
  if command == 'TIME' then return { KEYS[2], KEYS[3] } end
  if command == 'PEXPIRE' then return server.call('HSET', 'ttl', key, ...) end
  if command == 'UNLINK' then server.call('HDEL', 'ttl', key) end
  return server.call(command, key, ...)
end }
`

func newReal(t testing.TB) *realPeer {
	return &realPeer{
		served: served{redistest.Server(t).Client()},
		ends:   map[string]int64{}, made: map[string]*redis.Script{},
	}
}

func (p *realPeer) set(now int64) {
	p.now = now
	for key, end := range p.ends {
		if end <= now {
			p.drop(key)
		}
	}
}

func (p *realPeer) drop(key string) {
	p.rdb.Del(context.Background(), key)
	delete(p.ends, key)
}

func (p *realPeer) eval(s *lua.Script, key string, args []any) (any, error) {
	ctx := context.Background()
	made := p.made[s.Name()]
	if made == nil {
		made = redis.NewScript(shim + s.Text())
		p.made[s.Name()] = made
	}
	p.rdb.Del(ctx, "ttl")
	keys := []string{key, strconv.FormatInt(p.now/1e6, 10), strconv.FormatInt(p.now%1e6, 10)}
	reply, err := made.Run(ctx, p.rdb, keys, args...).Result()
	if ms, noted := p.rdb.HGet(ctx, "ttl", key).Int64(); noted == nil {
		p.ends[key] = p.now + ms*1000
	}
	return reply, err
}

func (p *realPeer) ttl(key string) int64 {
	if p.rdb.Exists(context.Background(), key).Val() == 0 {
		return -2
	}
	end, ok := p.ends[key]
	if !ok {
		return -1
	}
	return (end - p.now) / 1000
}

func TestCoursesAsOnRedis(t *testing.T) {
	courses(t, newReal(t), 12)
}

// The scripts as they are, by the clock of the server. What is stored says at which
// instant the server was, and there the host must be the same.
func TestMessagesByTheClockOfRedis(t *testing.T) {
	ctx := t.Context()
	rdb := redistest.Server(t).Client()
	p := served{rdb}
	now := int64(0)
	h := New(func() int64 { return now })
	const key = "rl:{clock}"
	l := limit{num: 50, den: 1, burst: 20 * unit}
	held := map[string]int64{}
	for i := range int64(200) {
		id := []string{"a", "b", "c"}[i%3]
		m := message{
			id: id, seq: i + 1, limit: l, ttl: 3_000_000, demand: 30 * unit, want: 4 * unit, most: 40 * unit, burst: 10 * unit,
			kept: held[id] / 2, returned: held[id] / 4,
			needs: []need{{tokens: unit, count: i % 4, queue: i%2 == 0}},
		}
		m.spent = held[id] - m.kept - m.returned
		script, args := lua.Acquire, m.args()
		if i%50 == 49 {
			script, args = lua.Reset, l.args()
		}
		want, err := rdb.Eval(ctx, script.Text(), []string{key}, args...).Result()
		if err != nil {
			t.Fatal(err)
		}
		stored := p.fields(key)
		if now, err = strconv.ParseInt(stored["s"], 10, 64); err != nil {
			t.Fatalf("message %d: the server stores %v", i, stored)
		}
		got, err := h.Eval(script, key, args)
		same(t, "message "+strconv.FormatInt(i, 10), got, err, want)
		same(t, "what is stored", h.Fields(key), nil, stored)
		if script == lua.Acquire {
			held[id] = integer(got.([]any)[8])
		}
		end := rdb.PExpireTime(ctx, key).Val()
		mine := time.Duration(now)*time.Microsecond + h.TTL(key)
		if d := end - mine; d < -10*time.Second || d > 10*time.Second {
			t.Fatalf("message %d: the key ends at %v on the server, and at %v on the host", i, end, mine)
		}
	}
}
