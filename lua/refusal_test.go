package lua_test

import (
	"maps"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/lua"
)

// refusals: scripts that fail have changed nothing.
var refusals = []scenario{
	{"a key that is no hash", func(w *world) {
		l := per(10, time.Second, 10)
		w.client().Set(w.Context(), w.key, "mine", 0)
		for _, s := range []*lua.Script{lua.Acquire, lua.Peek, lua.Reset} {
			args := l.args()
			if s == lua.Acquire {
				args = ask(l, 1, 1).args()
			}
			_, err := w.eval(s, w.key, args)
			if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
				w.Fatalf("%s: %v, want WRONGTYPE", s.Name(), err)
			}
		}
		if got := w.client().Get(w.Context(), w.key).Val(); got != "mine" {
			w.Fatalf("the key holds %q", got)
		}
		w.equal(w.ttl(w.key), -1)
	}},
	{"a broken state", func(w *world) {
		l := per(10, time.Second, 10)
		w.acquire(lump(l, "a", 1, 5))
		for _, field := range []string{"o", "x"} {
			good := w.state()[field]
			w.store(field, "x")
			w.fails(lua.Acquire, ask(l, 1, 1).args())
			w.fails(lua.Reset, l.args())
			if good == "" {
				w.client().HDel(w.Context(), w.key, field)
			} else {
				w.store(field, good)
			}
		}
		w.equal(w.acquire(ask(l, 1, 1)).granted[0], 1)
	}},
	{"broken arguments", func(w *world) {
		l := per(10, time.Second, 10)
		m := lump(l, "a", 1, 5)
		m.needs = []need{{n: 1, count: 1}}
		for _, exists := range []bool{false, true} {
			if exists {
				w.acquire(lump(l, "b", 1, 2))
			}
			for i := range m.args() {
				if i < 2 {
					continue // the format is checked with the state, the id is text
				}
				for _, broken := range []any{"x", ""} {
					args := m.args()
					args[i] = broken
					w.fails(lua.Acquire, args)
				}
			}
			w.fails(lua.Acquire, m.args()[:4])
			w.fails(lua.Acquire, m.args()[:22])
		}
	}},
}

// fails runs a script that must fail and change nothing.
func (w *world) fails(s *lua.Script, args []any) {
	w.Helper()
	before, ttl := w.state(), w.ttl(w.key)
	reply, err := w.eval(s, w.key, args)
	if err == nil || redis.HasErrorPrefix(err, "NOSCRIPT") {
		w.Fatalf("%s with %v: %v, %v, want an error", s.Name(), args, reply, err)
	}
	if after := w.state(); !maps.Equal(before, after) {
		w.Fatalf("%s with %v failed and made %v of %v", s.Name(), args, after, before)
	}
	if after := w.ttl(w.key); after != ttl {
		w.Fatalf("%s with %v failed and made the time to live %d of %d", s.Name(), args, after, ttl)
	}
}
