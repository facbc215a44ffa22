package lua_test

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/internal/redistest"
	"github.com/resilient-go/limiter/lua"
)

func infinite(member string) redis.Z { return redis.Z{Score: inf, Member: member} }

// A lump is at most half of what is left, and ends with its window.
func TestFixedWindowLends(t *testing.T) {
	everywhere(t, "lends", func(w *world) {
		l := perWindow(100, 10*time.Second)
		step := func(what string, m message, lump, tokens int64, ttl time.Duration) answer {
			w.Helper()
			m.least = 4 * unit
			a := w.tell(lua.FixedWindow, m)
			if a.lump != lump*unit || a.tokens != tokens*unit || a.ttl != ttl.Microseconds() {
				w.Fatalf("%s: a lump of %d for %d us, and %d left, want %d, %v, %d", what, a.lump/unit, a.ttl, a.tokens/unit, lump, ttl, tokens)
			}
			return a
		}
		a := lump(l, "a", 1, 30)
		step("what it wants", a, 30, 70, time.Second)
		step("half of what is left", lump(l, "b", 2, 60), 35, 35, time.Second)
		w.pass(time.Second)
		a.seq, a.kept, a.returned, a.spent, a.want = 3, 10*unit, 15*unit, 5*unit, 0
		step("what it gave back is there again", a, 10, 50, time.Second)
		b := lump(l, "b", 4, 2)
		b.kept = 40 * unit
		step("more than it was lent is not kept, and was spent", b, 35, 45, time.Second)
		w.pass(8500 * time.Millisecond)
		a = lump(l, "a", 5, 20)
		step("what it said nothing of is not given back; the window ends in half a second", a, 20, 25, 500*time.Millisecond)
		w.pass(400 * time.Millisecond)
		a.seq, a.kept, a.spent, a.want = 6, 15*unit, 5*unit, 10*unit
		step("less of the time, less of the lump", a, 20, 20, 100*time.Millisecond)
		w.pass(60 * time.Millisecond)
		a.seq, a.kept, a.spent = 7, 20*unit, 0
		step("none that would be over on arrival", a, 20, 20, 40*time.Millisecond)
		w.pass(40 * time.Millisecond)
		a.seq, a.kept, a.returned, a.spent, a.want = 8, 10*unit, 10*unit, 5*unit, 0
		step("the last window is of no account", a, 0, 100, 0)
	})
}

// A message of a holder that comes after a later one changes nothing.
func TestFixedWindowKnowsLateMessages(t *testing.T) {
	everywhere(t, "late", func(w *world) {
		l := perWindow(100, time.Minute)
		w.tell(lua.FixedWindow, lump(l, "a", 5, 20))
		w.undisturbed(func() {
			late := lump(l, "a", 4, 10)
			late.returned = 20 * unit
			if a := w.tell(lua.FixedWindow, late); a.status != stale {
				w.Fatalf("%+v", a)
			}
		})
	})
}

// Reset forgives what was spent, and not what is on lease.
func TestFixedWindowResetKeepsLeases(t *testing.T) {
	everywhere(t, "reset", func(w *world) {
		l := perWindow(100, time.Minute)
		w.ask(lua.FixedWindow, ask(l, 50, 1))
		w.tell(lua.FixedWindow, lump(l, "a", 5, 20))
		if a := w.look(lua.FixedWindow, lua.FixedWindow.Reset, l); a.tokens != 80*unit || a.out != 20*unit {
			w.Fatalf("%+v", a)
		}
		if a := w.look(lua.FixedWindow, lua.FixedWindow.Peek, l); a.tokens != 80*unit || a.out != 20*unit || a.lastEnd != 60_000_000 {
			w.Fatalf("%+v", a)
		}
	})
}

// Each algorithm sends one text for all operations, so that a server caches few, and
// each knows its own state only.
func TestScriptsOfTheAlgorithms(t *testing.T) {
	s := &realServer{TB: t, rdb: redistest.Server(t).Client()}
	for name, algo := range others {
		w := &world{tb: t, server: s, key: "rl:{k}" + algo.Suffix}
		for _, script := range []*lua.Script{algo.Acquire, algo.Peek, algo.Reset} {
			if sha, err := s.rdb.ScriptLoad(t.Context(), script.Text()).Result(); err != nil || sha != script.SHA() {
				t.Errorf("%s of %s: the server says %q, %v, want %q", script.Name(), name, sha, err, script.SHA())
			}
		}
		if _, err := run(s.rdb, algo.Acquire.SHA(), algo.Acquire.Text(), []string{w.key}, ask(perWindow(10, time.Second), 1, 1).args()); err != nil {
			t.Error(err)
		}
	}
	info := s.rdb.Info(t.Context(), "memory").Val()
	m := regexp.MustCompile(`number_of_cached_scripts:(\d+)`).FindStringSubmatch(info)
	if want := fmt.Sprint(len(others) + 2); m == nil || m[1] != want { // and peek and reset of the bucket
		t.Errorf("cached scripts %v, want %s", m, want)
	}
	if n := s.rdb.DBSize(t.Context()).Val(); n != int64(len(others)) {
		t.Errorf("%d keys for %d algorithms", n, len(others))
	}
}
