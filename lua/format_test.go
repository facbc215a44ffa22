package lua_test

import "time"

// formats: states of another version, and states that nobody understands.
var formats = []scenario{
	{"a newer format is told and left alone", func(w *world) {
		l := per(10, time.Second, 10)
		states := [][]any{
			{"l", "2 1 1 10 0", "t", "5000000", "s", "1767225600123456"},
			{"l", "2 something else", "t", "x", "s", "y", "f", "-", "o", "1.5", "x", "never", "e", "?", "hasker", "free"},
			{"l", "10 9"},
		}
		for _, fields := range states {
			w.client().Del(w.Context(), w.key)
			w.store(fields...)
			m := ask(l, 1, 1)
			m.want = 5 * unit
			w.unchanged(func() { w.equal(w.acquire(m).status, newer) })
			w.unchanged(func() { w.equal(w.peek(l).status, newer) })
			w.unchanged(func() { w.equal(w.reset(l).status, newer) })
		}
	}},
	{"a hash of somebody else's counts as full", func(w *world) {
		l := per(10, time.Second, 10)
		w.store("name", "Ada")
		w.granted(w.acquire(ask(l, 1, 1)), 9*unit, 1)
		w.equal(w.ttl(w.key), 1100)
	}},
}
