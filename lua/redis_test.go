package lua_test

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/resilient-go/limiter/internal/redistest"
	"github.com/resilient-go/limiter/lua"
)

// What follows is about a real server alone, with the scripts as they are.

func eval(t *testing.T, w *world, s *lua.Script, args []any, needs int) answer {
	t.Helper()
	reply, err := run(w.client(), s.SHA(), s.Text(), []string{w.key}, args)
	if err != nil {
		t.Fatalf("%s: %v", s.Name(), err)
	}
	return read(t, reply, needs)
}

func TestServerClock(t *testing.T) {
	s := &realServer{TB: t, rdb: redistest.Server(t).Client()}
	w := &world{tb: t, server: s, key: "rl:{clock}"}
	l := per(1, time.Hour, 10)
	before := s.rdb.Time(t.Context()).Val()
	eval(t, w, lua.Acquire, ask(l, 10, 1).args(), 1)
	after := s.rdb.Time(t.Context()).Val()
	at, err := strconv.ParseInt(w.state()["s"], 10, 64)
	if err != nil || at < before.UnixMicro() || at > after.UnixMicro() {
		t.Errorf("the state is of %d, want between %d and %d", at, before.UnixMicro(), after.UnixMicro())
	}
	if ttl := s.rdb.PTTL(t.Context(), w.key).Val(); ttl > 10*time.Hour+time.Second || ttl < 10*time.Hour {
		t.Errorf("the key lives for %v, want 10h1s and a little less", ttl)
	}
	// An hour ago on the clock of the server.
	w.store("s", at-time.Hour.Microseconds())
	if a := eval(t, w, lua.Peek, l.args(), -1); a.tokens < unit || a.tokens > unit+unit/10 {
		t.Errorf("%d tokens after an hour, want one and a little more", a.tokens)
	}
	s.rdb.Persist(t.Context(), w.key)
	eval(t, w, lua.Peek, l.args(), -1)
	if ttl := s.rdb.PTTL(t.Context(), w.key).Val(); ttl != -1 {
		t.Errorf("a peek set a time to live of %v", ttl)
	}
	eval(t, w, lua.Reset, l.args(), -1)
	if ttl := s.rdb.PTTL(t.Context(), w.key).Val(); ttl > time.Second || ttl <= 0 {
		t.Errorf("a full key lives for %v, want one second at most", ttl)
	}
}

func TestColdKeysAreSmall(t *testing.T) {
	s := &realServer{TB: t, rdb: redistest.Server(t).Client()}
	size := func(w *world) int64 {
		return s.rdb.MemoryUsage(t.Context(), w.key).Val()
	}
	for name, l := range map[string]limit{
		"per second":    per(100, time.Second, 100),
		"per 366 days":  per(1, 366*24*time.Hour, 100),
		"with fraction": per(7, 3*time.Second, 1_000_000),
		"the largest":   per(999_999_999, time.Second, 1_000_000_000),
	} {
		l.version = 1_000_000
		w := &world{tb: t, server: s, key: "rl:{api:user:1000001 " + name + "}"}
		eval(t, w, lua.Acquire, ask(l, 1, 1).args(), 1)
		if n := size(w); n <= 0 || n >= 200 {
			t.Errorf("%s: a cold key takes %d bytes, want less than 200: %v", name, n, w.state())
		}
		// The texts of leases make the hash a table, which it would remain.
		for i := range int64(3) {
			m := lump(l, fmt.Sprintf("%016d", i), 1_000_000_000+i, 1_000_000)
			m.ttl, m.demand = 25*time.Second, 1_000_000_000*unit
			eval(t, w, lua.Acquire, m.args(), 0)
		}
		if n := size(w); n < 400 {
			t.Errorf("%s: a key with three leases takes %d bytes: the test shows nothing", name, n)
		}
		for i := range int64(3) {
			m := lump(l, fmt.Sprintf("%016d", i), 2_000_000_000, 0)
			m.returned = 1_000_000 * unit
			eval(t, w, lua.Acquire, m.args(), 0)
		}
		if n := size(w); n <= 0 || n >= 200 {
			t.Errorf("%s: a key that is cold again takes %d bytes, want less than 200: %v", name, n, w.state())
		}
	}
}

func TestServerCachesThreeScripts(t *testing.T) {
	s := &realServer{TB: t, rdb: redistest.Server(t).Client()}
	calls := int64(300)
	if full {
		calls = 100_000
	}
	for i := range calls {
		w := &world{tb: t, server: s, key: fmt.Sprintf("rl:{%d}", i%1000)}
		l := per(i+1, time.Second, i+1)
		eval(t, w, lua.Acquire, ask(l, 1, 1).args(), 1)
		eval(t, w, lua.Peek, l.args(), -1)
		eval(t, w, lua.Reset, l.args(), -1)
	}
	info := s.rdb.Info(t.Context(), "memory").Val()
	m := regexp.MustCompile(`number_of_cached_scripts:(\d+)`).FindStringSubmatch(info)
	if m == nil || m[1] != "3" {
		t.Errorf("cached scripts %v, want 3", m)
	}
}

func TestDigestsAreThoseOfTheServer(t *testing.T) {
	s := &realServer{TB: t, rdb: redistest.Server(t).Client()}
	for _, script := range []*lua.Script{lua.Acquire, lua.Peek, lua.Reset} {
		if sha, err := s.rdb.ScriptLoad(t.Context(), script.Text()).Result(); err != nil || sha != script.SHA() {
			t.Errorf("%s: the server says %q, %v, want %q", script.Name(), sha, err, script.SHA())
		}
	}
}
