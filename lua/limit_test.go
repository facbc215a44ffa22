package lua_test

import "time"

// limits: another limit than the one that the state was made with.
var limits = []scenario{
	{"a lower limit cuts the tokens", func(w *world) {
		w.acquire(ask(per(100, time.Second, 100), 10, 1))
		low := per(10, time.Second, 20)
		w.granted(w.acquire(ask(low, 1, 1)), 19*unit, 1)
		w.granted(w.acquire(ask(low, 19, 1)), 0, 1)
		w.pass(100 * time.Millisecond)
		w.granted(w.acquire(ask(low, 1, 2)), 0, 1)
	}},
	{"a higher limit keeps the tokens", func(w *world) {
		w.acquire(ask(per(10, time.Second, 20), 15, 1))
		high := per(100, time.Second, 100).newer()
		w.equal(w.peek(high).tokens, 5*unit)
		w.granted(w.acquire(ask(high, 5, 1)), 0, 1)
		w.pass(10 * time.Millisecond)
		w.granted(w.acquire(ask(high, 1, 2)), 0, 1)
	}},
	{"the fraction of another limit is worth nothing", func(w *world) {
		// One per 366 days counts in units of 1/31,622,400 micro-token.
		slow, fast := per(1, 366*24*time.Hour, 100), per(100, time.Second, 100).newer()
		w.acquire(ask(slow, 100, 1))
		w.pass(31 * time.Second)
		w.equal(w.acquire(ask(slow, 100, 1)).tokens, 0)
		w.granted(w.acquire(ask(fast, 1, 1)), 0, 0)
		for range 3 {
			w.granted(w.acquire(ask(fast, 1, 1)), 0, 0)
		}
		if _, present := w.state()["f"]; present {
			w.Fatalf("a fraction is stored although the rate has none: %v", w.state())
		}
	}},
	{"a debt beyond the new burst is cut", func(w *world) {
		l := per(1_000_000_000, time.Second, 1_000_000_000)
		w.acquire(lump(l, "a", 1, 100))
		m := lump(l, "a", 2, 0)
		m.spent = 2_000_000_000 * unit
		w.equal(w.acquire(m).tokens, -1_000_000_000*unit)
		low := per(1, 366*24*time.Hour, 2)
		w.equal(w.peek(low).tokens, -2*unit)
		w.equal(w.acquire(ask(low, 1, 1)).tokens, -2*unit)
	}},
	{"more out than the new burst", func(w *world) {
		l := per(1_000_000_000, time.Second, 1_000_000_000)
		m := lump(l, "a", 1, 400_000_000)
		w.held(w.acquire(m), 600_000_000, 400_000_000, 400_000_000)
		low := per(1, 366*24*time.Hour, 2)
		w.granted(w.acquire(ask(low, 1, 1)), 0, 0)
		m = lump(low, "a", 2, 0)
		m.kept = 400_000_000 * unit
		w.held(w.acquire(m), 0, 2, 2) // what is kept is cut to it as well
		w.pass(time.Second)
		w.granted(w.acquire(ask(low, 1, 1)), 0, 0)
		w.pass(366 * 24 * time.Hour)
		w.granted(w.acquire(ask(low, 1, 1)), 0, 1)
	}},
	{"who lies about a lease beyond the new burst", func(w *world) {
		m := lump(per(100, time.Second, 100), "a", 1, 40)
		w.acquire(m)
		m = lump(per(10, time.Second, 30), "a", 2, 0)
		m.kept, m.spent = 40*unit, 5*unit
		w.held(w.acquire(m), -5, 30, 30) // five too many: they are charged
	}},
	{"all leases fit the new burst one lease later", func(w *world) {
		high, low := per(1000, time.Second, 1000), per(100, time.Second, 50)
		var kept, seq [3]int64
		for i, id := range []string{"a", "b", "c"} {
			m := lump(high, id, 1, 200)
			kept[i], seq[i] = w.acquire(m).lump, 1
			w.pass(100 * time.Millisecond)
		}
		begun := w.now
		a := w.acquire(ask(low, 1, 1))
		w.equal(a.granted[0], 0)
		w.equal(a.out, 600*unit)
		for w.now < begun+1_000_000 {
			// a and b renew and spend one token each time, c is dead.
			for i, id := range []string{"a", "b"} {
				seq[i]++
				m := lump(low, id, seq[i], 20)
				m.least = unit
				if kept[i] > 0 {
					m.spent = unit
				}
				m.kept = kept[i] - m.spent
				a = w.acquire(m)
				kept[i] = a.lump
				if others := a.out - a.lump; a.lump > max(0, low.burst-others) {
					w.Fatalf("a lease of %d beside %d of others", a.lump, others)
				}
			}
			w.pass(100 * time.Millisecond)
		}
		a = w.peek(low)
		if a.tokens+a.out > low.burst || a.out != kept[0]+kept[1] {
			w.Fatalf("%+v, want %d out, and all within %d", a, kept[0]+kept[1], low.burst)
		}
	}},
	{"what comes back under a lower limit is cut to it", func(w *world) {
		m := lump(per(100, time.Second, 100), "a", 1, 40)
		w.acquire(m)
		m = lump(m.limit, "b", 1, 20)
		w.acquire(m)
		m = lump(per(10, time.Second, 30), "a", 2, 0)
		m.returned = 40 * unit
		w.held(w.acquire(m), 10, 0, 20)
	}},
	{"a reset takes the new limit", func(w *world) {
		w.acquire(ask(per(100, time.Second, 100), 100, 1))
		w.equal(w.reset(per(10, time.Second, 20)).tokens, 20*unit)
	}},
	{"the version of the limit is stored", func(w *world) {
		l := per(100, time.Second, 100)
		w.acquire(ask(l, 1, 1))
		l.version = 9_007_199_254_740_991
		w.acquire(ask(l, 1, 1)) // checkState reads it
		w.equal(w.peek(l).tokens, 98*unit)
	}},
}
