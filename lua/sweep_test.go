package lua_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/resilient-go/limiter/lua"
)

// sweeping: leases that ended without a word.
var sweeping = []scenario{
	{"ended leases are swept, sixteen a call", func(w *world) {
		holders := w.many(1000)
		l := per(1000, time.Second, 10*holders)
		for i := range holders {
			w.quietly(lump(l, fmt.Sprint("dead", i), i+1, 1))
		}
		w.pass(500 * time.Millisecond)
		w.equal(w.acquire(lump(l, "alive", 1, 1)).out, (holders+1)*unit)
		w.pass(500 * time.Millisecond)

		before, calls := w.leases(), 0
		for seq := int64(2); len(before) > 1; seq++ {
			if calls++; calls > int(holders) {
				w.Fatalf("%d leases left after %d calls", len(before), calls)
			}
			w.pass(10 * time.Millisecond)
			m := lump(l, "alive", seq, 0)
			m.kept = unit
			a := w.quietly(m)
			after := w.leases()
			if gone := len(before) - len(after); gone < 0 || gone > 16 {
				w.Fatalf("%d leases went in one call, want at most 16", gone)
			}
			w.equal(a.out, int64(len(after))*unit)
			before = after
		}
		if calls < int(holders)/16 {
			w.Fatalf("%d leases went in %d calls", holders, calls)
		}
		m := lump(l, "alive", 5000, 0)
		m.returned = unit
		w.acquire(m)
		w.cold()
	}},
	{"holders that come and go do not pile up", func(w *world) {
		l := per(10_000, time.Second, 100_000)
		const gap = time.Millisecond
		most := 0
		for i := range w.many(4000) {
			w.pass(gap)
			m := lump(l, fmt.Sprint(i), 1, 1)
			m.ttl = time.Duration(w.many(500)) * gap
			w.quietly(m)
			if i%50 == 49 {
				most = max(most, len(w.leases()))
			}
		}
		// A sweep rests for a second.
		if limit := int(w.many(500) + 1100); most > limit {
			w.Fatalf("%d leases recorded at once, want at most %d", most, limit)
		}
	}},
	{"a lease that nobody reads is gone as well", func(w *world) {
		l := per(100, time.Second, 100)
		w.acquire(lump(l, "a", 1, 10))
		w.store("hbroken", "what is this")
		w.pass(900 * time.Millisecond)
		w.quietly(lump(l, "b", 1, 10))
		w.pass(100 * time.Millisecond)
		m := lump(l, "b", 2, 0)
		m.kept = 10 * unit
		w.acquire(m)
		if got := w.leases(); !slices.Equal(got, []string{"hb"}) {
			w.Fatalf("leases %v, want hb alone", got)
		}
	}},
	{"with every lease ended the key is cold", func(w *world) {
		l := per(7, 3*time.Second, 100)
		for i := range int64(8) {
			w.acquire(lump(l, fmt.Sprint(i), 1, 5))
		}
		w.pass(time.Second)
		w.acquire(ask(l, 1, 1))
		w.cold()
	}},
	{"with every lease ended a reset makes the key cold", func(w *world) {
		l := per(100, time.Second, 100)
		w.acquire(lump(l, "a", 1, 5))
		w.pass(time.Second)
		w.reset(l)
		w.cold()
	}},
	{"with every lease returned the key is cold", func(w *world) {
		l := per(100, time.Second, 100)
		for i := range int64(40) {
			w.acquire(lump(l, fmt.Sprint(i), 1, 1))
		}
		for i := range int64(40) {
			m := lump(l, fmt.Sprint(i), 2, 0)
			m.spent = unit / 2
			m.returned = unit / 2
			w.acquire(m)
		}
		w.cold()
	}},
}

// many is a large number, or less where the server is slow with large hashes.
func (w *world) many(n int64) int64 {
	if _, mini := w.server.(*miniServer); mini {
		return n / 8
	}
	return n
}

// quietly sends a message without a look at the whole state, which is large.
func (w *world) quietly(m interface{ args() []any }) answer {
	w.Helper()
	reply, err := w.eval(lua.Acquire, w.key, m.args())
	if err != nil {
		w.Fatalf("acquire: %v", err)
	}
	return read(w, reply, (len(m.args())-20)/3)
}

func (w *world) leases() []string {
	w.Helper()
	return slices.DeleteFunc(slices.Sorted(maps.Keys(w.state())), func(f string) bool { return !strings.HasPrefix(f, "h") })
}

// cold fails unless the hash has the cold form.
func (w *world) cold() {
	w.Helper()
	for field := range w.state() {
		if !strings.Contains("l t s f", field) {
			w.Fatalf("a cold key has a field %s: %v", field, w.state())
		}
	}
}
