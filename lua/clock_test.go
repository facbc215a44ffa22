package lua_test

import "time"

// clocks: steps of the server's clock.
var clocks = []scenario{
	{"a clock set back freezes nothing and gives nothing", func(w *world) {
		for _, back := range []time.Duration{time.Microsecond, 10 * time.Second, time.Hour, 400 * 24 * time.Hour} {
			l := per(100, time.Second, 100)
			w.reset(l)
			w.granted(w.acquire(ask(l, 100, 1)), 0, 1)
			w.pass(-back)
			w.equal(w.peek(l).tokens, 0)
			w.granted(w.acquire(ask(l, 1, 1)), 0, 0)
			w.pass(10 * time.Millisecond)
			w.granted(w.acquire(ask(l, 1, 2)), 0, 1)
		}
	}},
	{"a peek at a clock set back", func(w *world) {
		l := per(100, time.Second, 100)
		w.acquire(ask(l, 50, 1))
		w.pass(-time.Second)
		w.unchanged(func() { w.equal(w.peek(l).tokens, 50*unit) })
		w.pass(time.Second + 100*time.Millisecond)
		w.equal(w.peek(l).tokens, 60*unit)
	}},
	{"a clock set forward gives a burst at most", func(w *world) {
		l := per(1, time.Hour, 100)
		w.granted(w.acquire(ask(l, 100, 1)), 0, 1)
		w.pass(99 * time.Hour)
		w.granted(w.acquire(ask(l, 1, 1)), 98*unit, 1)
		w.pass(10 * 366 * 24 * time.Hour)
		w.granted(w.acquire(ask(l, 1, 101)), 0, 100)
	}},
	{"to and fro", func(w *world) {
		l := per(100, time.Second, 100)
		w.acquire(ask(l, 100, 1))
		granted := int64(0)
		for range 100 {
			w.pass(5 * time.Millisecond)
			granted += w.acquire(ask(l, 1, 9)).granted[0]
			w.pass(-5 * time.Millisecond)
			granted += w.acquire(ask(l, 1, 9)).granted[0]
		}
		w.equal(granted, 50) // for the 100 times 5 ms that it went forward, and no more
	}},
	{"leases of a clock set back end in time", func(w *world) {
		for _, back := range []time.Duration{10 * time.Second, time.Hour} {
			l := per(100, time.Second, 100)
			w.acquire(lump(l, "dead", 1, 40))
			w.pass(-back)
			w.acquire(lump(l, "alive", 1, 1)) // the first to see it cuts the ends
			for seq := int64(2); seq < 12; seq++ {
				w.pass(100 * time.Millisecond)
				m := lump(l, "alive", seq, 0)
				m.kept = unit
				w.acquire(m)
			}
			m := lump(l, "alive", 12, 0)
			m.returned = unit
			w.equal(w.acquire(m).out, 0)
			w.reset(l)
			w.cold()
		}
	}},
	{"leases of a clock set back end without a word in half a minute", func(w *world) {
		l := per(100, time.Second, 100)
		w.acquire(lump(l, "dead", 1, 40))
		w.pass(-time.Hour)
		a := w.reset(l)
		w.equal(a.lastEnd, 30_000_000)
		w.equal(a.tokens, 60*unit)
		w.pass(30*time.Second - time.Microsecond)
		w.equal(w.peek(l).out, 40*unit)
		w.pass(400*time.Millisecond + time.Microsecond)
		a = w.peek(l)
		w.equal(a.out, 0)
		w.equal(a.tokens, 100*unit)
	}},
	{"many leases of a clock set back end", func(w *world) {
		l := per(1000, time.Second, 10_000)
		for i := range int64(200) {
			w.quietly(lump(l, str(i), 1, 1))
		}
		w.pass(-10 * time.Second)
		m := lump(l, "alive", 1, 1)
		for range 40 {
			w.acquire(m)
			m.seq, m.kept, m.want = m.seq+1, unit, 0
			w.pass(100 * time.Millisecond)
		}
		w.equal(int64(len(w.leases())), 1)
	}},
	{"a clock set forward ends leases", func(w *world) {
		l := per(100, time.Second, 100)
		w.acquire(lump(l, "a", 1, 40))
		w.pass(time.Hour)
		m := lump(l, "a", 2, 0)
		m.kept, m.spent = 30*unit, 10*unit
		w.held(w.acquire(m), 100, 0, 0)
	}},
	{"a clock in the year 2254", func(w *world) {
		w.pass(8_990_000_000_000_000*time.Microsecond/2 - origin/2*time.Microsecond)
		w.pass(8_990_000_000_000_000*time.Microsecond/2 - origin/2*time.Microsecond)
		l := per(7, 3*time.Second, 70)
		w.held(w.acquire(lump(l, "a", 1, 30)), 40, 30, 30)
		w.granted(w.acquire(ask(l, 40, 1)), 0, 1)
		w.pass(3 * time.Second)
		w.granted(w.acquire(ask(l, 1, 100)), 0, 7)
	}},
}
