package lua_test

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/internal/redistest"
	"github.com/resilient-go/limiter/lua"
)

// origin is the clock of a new world, in microseconds: 2026, beyond 10^15.
const origin = 1_767_225_600_123_456

// A server runs scripts by a clock that the test sets.
type server interface {
	client() redis.UniversalClient
	// set moves the clock to an instant, in microseconds.
	set(now int64)
	eval(s *lua.Script, key string, args []any) (any, error)
	// ttl is what is left of a key's time to live, in ms; -1 if it has none and -2
	// if there is no key.
	ttl(key string) int64
	persist(key string)
}

// A tb is a test, or a check of a property.
type tb interface {
	Helper()
	Fatalf(format string, args ...any)
	Context() context.Context
}

// A world is a server, one key and the time.
type world struct {
	tb
	server
	key     string
	now     int64
	stepped bool // the clock went back once
}

func newWorld(t tb, s server, key string) *world {
	w := &world{tb: t, server: s, key: "rl:{" + key + "}", now: origin}
	s.set(w.now)
	return w
}

// pass moves the clock, backwards too.
func (w *world) pass(d time.Duration) { w.move(d.Microseconds()) }

// move moves the clock by so many microseconds. A key that ended thereby is gone.
func (w *world) move(us int64) {
	w.now = min(w.now+us, latest)
	w.stepped = w.stepped || us < 0
	w.set(w.now)
	if w.ttl(w.key) == -2 {
		w.client().Del(w.Context(), w.key, "ttl "+w.key)
	}
}

// latest is the end of time, in microseconds: in 2255, just below 2^53. Later ones, with
// what is added to them, are no instants of a clock that counts nanoseconds.
const latest = 9_000_000_000_000_000

// acquire sends a message and checks the state that it leaves.
func (w *world) acquire(m message) answer {
	w.Helper()
	reply, err := w.eval(lua.Acquire, w.key, m.args())
	if err != nil {
		w.Fatalf("acquire: %v", err)
	}
	a := read(w, reply, len(m.needs))
	if a.done() {
		w.checkState(a.under(m.limit), a)
		w.checkGrace(a)
	}
	return a
}

func (w *world) peek(l limit) answer {
	w.Helper()
	reply, err := w.eval(lua.Peek, w.key, l.args())
	if err != nil {
		w.Fatalf("peek: %v", err)
	}
	return read(w, reply, -1)
}

func (w *world) reset(l limit) answer {
	w.Helper()
	reply, err := w.eval(lua.Reset, w.key, l.args())
	if err != nil {
		w.Fatalf("reset: %v", err)
	}
	a := read(w, reply, -1)
	if a.done() {
		w.checkState(a.under(l), a)
	}
	return a
}

// state is the stored hash; nil if there is none.
func (w *world) state() map[string]string {
	w.Helper()
	v, err := w.client().HGetAll(context.Background(), w.key).Result()
	if err != nil {
		w.Fatalf("HGETALL: %v", err)
	}
	return v
}

// store writes fields past the scripts.
func (w *world) store(pairs ...any) {
	w.Helper()
	if err := w.client().HSet(context.Background(), w.key, pairs...).Err(); err != nil {
		w.Fatalf("HSET: %v", err)
	}
}

// unchanged runs f and fails if it changed the hash or the time to live.
func (w *world) unchanged(f func()) {
	w.Helper()
	before, ttl := w.state(), w.ttl(w.key)
	f()
	if after := w.state(); !maps.Equal(before, after) {
		w.Fatalf("the state became %v, want it as before: %v", after, before)
	}
	if after := w.ttl(w.key); after != ttl {
		w.Fatalf("the time to live became %d ms, want %d", after, ttl)
	}
}

// miniServer is miniredis in a bubble. The scripts run as they are.
type miniServer struct {
	rdb  *redis.Client
	mini *miniredis.Miniredis
}

func newMini(t testing.TB) *miniServer {
	m := redistest.Bubble(t)
	return &miniServer{rdb: m.Client(), mini: m.Miniredis()}
}

func (s *miniServer) client() redis.UniversalClient { return s.rdb }
func (s *miniServer) set(now int64)                 { s.mini.SetTime(time.UnixMicro(now)) }

func (s *miniServer) eval(script *lua.Script, key string, args []any) (any, error) {
	return run(s.rdb, script.SHA(), script.Text(), []string{key}, args)
}

func (s *miniServer) ttl(key string) int64 {
	d := s.rdb.PTTL(context.Background(), key).Val()
	if d < 0 {
		return int64(d)
	}
	return d.Milliseconds()
}

func (s *miniServer) persist(key string) { s.rdb.Persist(context.Background(), key) }

// realServer is a redis-server. Its clock cannot be set, so the scripts get TIME
// from the test, and what they say to PEXPIRE is noted beside the key, together
// with how much time had passed.
type realServer struct {
	testing.TB
	rdb    *redis.Client
	now    int64
	passed int64 // forwards, in all
	made   map[string]*redis.Script
}

const shim = `local server = redis
local redis = { call = function(command, key, ...)
  if command == 'TIME' then return { KEYS[2], KEYS[3] } end
  if command == 'PEXPIRE' then return server.call('SET', 'ttl ' .. key, ... .. ' ' .. KEYS[4]) end
  if command == 'UNLINK' then server.call('DEL', 'ttl ' .. key) end
  return server.call(command, key, ...)
end }
`

func newReal(t testing.TB) *realServer {
	return &realServer{TB: t, rdb: redistest.Server(t).Client(), made: map[string]*redis.Script{}}
}

func (s *realServer) client() redis.UniversalClient { return s.rdb }

func (s *realServer) set(now int64) {
	s.passed += max(0, now-s.now)
	s.now = now
}

func (s *realServer) eval(script *lua.Script, key string, args []any) (any, error) {
	made := s.made[script.Name()]
	if made == nil {
		made = redis.NewScript(shim + script.Text())
		s.made[script.Name()] = made
	}
	keys := []string{key, str(s.now / 1e6), str(s.now % 1e6), str(s.passed)}
	return made.Run(context.Background(), s.rdb, keys, args...).Result()
}

func (s *realServer) ttl(key string) int64 {
	ctx := context.Background()
	if s.rdb.Exists(ctx, key).Val() == 0 {
		return -2
	}
	note, err := s.rdb.Get(ctx, "ttl "+key).Result()
	if err != nil {
		return -1
	}
	text, at, _ := strings.Cut(note, " ")
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms <= 0 {
		s.Fatalf("PEXPIRE was given %q", text)
	}
	then, _ := strconv.ParseInt(at, 10, 64)
	left := ms*1000 - (s.passed - then)
	if left <= 0 {
		return -2
	}
	return left / 1000
}

func (s *realServer) persist(key string) { s.rdb.Del(context.Background(), "ttl "+key) }

func run(rdb redis.UniversalClient, sha, text string, keys []string, args []any) (any, error) {
	ctx := context.Background()
	v, err := rdb.EvalSha(ctx, sha, keys, args...).Result()
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		return rdb.Eval(ctx, text, keys, args...).Result()
	}
	return v, err
}

func str(n int64) string { return fmt.Sprint(n) }
