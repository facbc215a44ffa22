package luahost

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/lua"
)

// A peer is a server that a Host is held against.
type peer interface {
	// set moves the clock to an instant, in microseconds. Keys that end thereby
	// are gone.
	set(now int64)
	eval(s *lua.Script, key string, args []any) (any, error)
	fields(key string) map[string]string
	// ttl is in ms: -1 if the key has none, and -2 if there is no key.
	ttl(key string) int64
	drop(key string)
}

// A world is a Host and a peer that get the same messages at the same time.
type world struct {
	tb   testing.TB
	seed uint64
	host *Host
	peer peer
	now  int64
	keys []string
	seen map[string]int // what the course met, to know that it shows something
}

func newWorld(t testing.TB, p peer, seen map[string]int) *world {
	w := &world{tb: t, peer: p, now: origin, keys: []string{"rl:{a}", "rl:{b}"}, seen: seen}
	w.host = New(func() int64 { return w.now })
	p.set(w.now)
	for _, key := range w.keys {
		p.drop(key)
	}
	return w
}

func (w *world) move(us int64) {
	w.now += us
	w.peer.set(w.now)
	w.compare("after a pause")
}

// eval runs a script on both and returns the reply, which is one; nil for an error.
func (w *world) eval(s *lua.Script, key string, args []any) []any {
	w.tb.Helper()
	got, err := w.host.Eval(s, key, args)
	want, wantErr := w.peer.eval(s, key, args)
	if (err == nil) != (wantErr == nil) {
		w.fatalf("%s %q: the host says %v, %v, the server %v, %v", s.Name(), args, got, err, want, wantErr)
	}
	if err != nil {
		if redis.HasErrorPrefix(wantErr, "wrong number") && err.Error() != wantErr.Error() {
			w.fatalf("%s %q: the host says %q, the server %q", s.Name(), args, err, wantErr)
		}
		w.seen["errors"]++
		w.compare(s.Name() + " that failed")
		return nil
	}
	if !reflect.DeepEqual(got, want) {
		w.fatalf("%s %q: the host says\n%#v, the server\n%#v", s.Name(), args, got, want)
	}
	w.compare(s.Name())
	return got.([]any)
}

func (w *world) fatalf(format string, args ...any) {
	w.tb.Helper()
	w.tb.Fatalf("seed %d: "+format, append([]any{w.seed}, args...)...)
}

// compare holds all that is stored against the peer.
func (w *world) compare(when string) {
	w.tb.Helper()
	for _, key := range w.keys {
		if got, want := w.host.Fields(key), w.peer.fields(key); !maps.Equal(got, want) {
			w.fatalf("%s, %s: the host stores\n%v, the server\n%v", when, key, got, want)
		}
		got := int64(w.host.TTL(key))
		if got > 0 {
			got /= 1e6
		}
		if want := w.peer.ttl(key); got != want {
			w.fatalf("%s, %s: it lives for %d ms on the host, and %d on the server", when, key, got, want)
		}
		if got == -2 {
			w.seen["keys that are not there"]++
		}
	}
}

// What the courses must have met, or they show nothing.
var kinds = []string{
	"errors", "stale", "newer", "lumps", "rates", "granted", "refused", "returned", "resets", "peeks",
	"charged", "credited", "parts", "lost", "reserved",
	"new limits", "keys that are not there", "dropped", "sweeps",
}

// A miniredis or redis-server by its client.
type served struct{ rdb *redis.Client }

func (s served) fields(key string) map[string]string {
	v, err := s.rdb.HGetAll(context.Background(), key).Result()
	if err != nil {
		return map[string]string{"error": err.Error()}
	}
	if len(v) == 0 {
		return nil
	}
	return v
}

// sorted are the names of fields, in order.
func sorted(fields map[string]string) []string { return slices.Sorted(maps.Keys(fields)) }
