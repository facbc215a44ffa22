package lua_test

import "time"

// saving: large requests.
var saving = []scenario{
	{"a large request that waits stops leases for the length of one", func(w *world) {
		w.empty(thousand)
		w.meter(renewal(thousand, "a", 1, 1000, 0))
		large := renewal(thousand, "b", 1, 1000, 0)
		large.needs = []need{{n: 80, count: 1, queue: true}}
		w.rated(w.meter(large), 0, 0, 1000*unit)
		w.equal(w.field("w"), w.now+1_000_000)
		w.pass(horizon)
		a := w.meter(renewal(thousand, "a", 2, 1000, 200))
		w.rated(a, 0, 0, 0)
		w.equal(a.ttl, 0)
		w.pass(80*time.Millisecond - time.Microsecond)
		large.seq = 2
		w.equal(w.meter(large).granted[0], 0)
		w.equal(w.field("w"), w.now-280_000+1+1_000_000) // as it was
		w.pass(time.Microsecond)
		large.seq = 3
		w.equal(w.meter(large).granted[0], 1)
		w.rated(w.meter(renewal(thousand, "a", 3, 1000, 0)), 0, 0, 0)
		w.pass(720*time.Millisecond - time.Microsecond)
		w.empty(thousand)
		w.rated(w.meter(renewal(thousand, "a", 4, 1000, 0)), 0, 0, 0)
		w.pass(time.Microsecond)
		w.rated(w.meter(renewal(thousand, "a", 5, 1000, 0)), 1000*unit, 100*unit-1000, 1000*unit) // beside what the root has
		w.equal(w.field("w"), 0)
	}},
	{"one that does not wait stops nothing", func(w *world) {
		w.empty(thousand)
		w.meter(renewal(thousand, "a", 1, 1000, 0))
		large := renewal(thousand, "b", 1, 1000, 0)
		large.needs = []need{{n: 80, count: 1}}
		w.meter(large)
		w.equal(w.field("w"), 0)
		w.pass(horizon)
		w.rated(w.meter(renewal(thousand, "a", 2, 1000, 200)), 1000*unit, 100*unit, 1000*unit)
	}},
	{"one that its own part can hold stops nothing", func(w *world) {
		w.empty(thousand)
		large := renewal(thousand, "a", 1, 1000, 0)
		large.needs = []need{{n: 80, count: 1, queue: true}}
		w.rated(w.meter(large), 1000*unit, 100*unit, 1000*unit)
		w.equal(w.field("w"), 0)
	}},
}

// charging: what was earned is known by the clock of the root.
var charging = []scenario{
	{"a fast clock is charged", func(w *world) {
		w.empty(thousand)
		w.meter(renewal(thousand, "a", 1, 1000, 0))
		w.pass(horizon)
		a := w.meter(renewal(thousand, "a", 2, 1000, 220))
		w.equal(a.tokens, -20*unit)
		w.rated(a, 900*unit, 90*unit, 900*unit) // the root gains the rest
		w.pass(horizon)
		w.equal(w.meter(renewal(thousand, "a", 3, 1000, 198)).tokens, -18*unit)
	}},
	{"a fast clock gains once, however long it goes on", func(w *world) {
		w.empty(thousand)
		rate := w.meter(renewal(thousand, "a", 1, 1000, 0)).rate
		total := int64(0)
		for seq := int64(2); seq <= 102; seq++ {
			w.pass(horizon)
			m := renewal(thousand, "a", seq, 1000, 0)
			m.spent = rate * 220 / 1000
			total += m.spent
			rate = w.meter(m).rate
			if gained := total - (seq-1)*200*unit; gained < 0 || gained > 20*unit {
				w.Fatalf("after %d horizons it is %d ahead, want one horizon's %d at most", seq-1, gained, 20*unit)
			}
		}
		w.equal(rate/unit, 909) // 1000 by its own clock
	}},
	{"a debt is paid by whoever renews next", func(w *world) {
		w.empty(thousand)
		w.equal(w.meter(renewal(thousand, "a", 1, 500, 0)).rate, 750*unit)
		w.equal(w.meter(renewal(thousand, "b", 1, 500, 0)).rate, 250*unit)
		w.pass(horizon)
		a := w.meter(renewal(thousand, "a", 2, 500, 165))
		w.equal(a.tokens, -15*unit)
		w.equal(a.rate, 500*unit) // that leaves enough to pay
		w.equal(w.meter(renewal(thousand, "b", 2, 500, 50)).rate, 425*unit)
	}},
	{"what a fast clock keeps is cut and charged", func(w *world) {
		w.empty(thousand)
		w.meter(renewal(thousand, "a", 1, 1000, 0))
		w.pass(50 * time.Millisecond)
		m := renewal(thousand, "a", 2, 1000, 0)
		m.kept = 55 * unit
		a := w.meter(m)
		w.equal(a.lump, 50*unit)
		w.equal(a.tokens, -5*unit)
	}},
	{"the way of a message is not charged", func(w *world) {
		w.empty(thousand)
		w.meter(renewal(thousand, "a", 1, 1000, 0))
		w.pass(210 * time.Millisecond) // sent at 200
		w.equal(w.meter(renewal(thousand, "a", 2, 1000, 200)).tokens, 0)
		w.pass(190 * time.Millisecond) // sent at 400, no time on the way
		w.equal(w.meter(renewal(thousand, "a", 3, 1000, 200)).tokens, 0)
		w.pass(horizon)
		w.equal(w.meter(renewal(thousand, "a", 4, 1000, 201)).tokens, -unit) // that was all
	}},
	{"a very long way is charged beyond a quarter of a horizon", func(w *world) {
		w.empty(thousand)
		w.meter(renewal(thousand, "a", 1, 1000, 0))
		w.pass(280 * time.Millisecond)
		w.equal(w.meter(renewal(thousand, "a", 2, 1000, 200)).tokens, 0)
		w.pass(120 * time.Millisecond)
		w.equal(w.meter(renewal(thousand, "a", 3, 1000, 200)).tokens, -30*unit)
	}},
	{"nothing is earned beyond the end", func(w *world) {
		w.empty(thousand)
		w.meter(renewal(thousand, "a", 1, 1000, 0))
		w.pass(500 * time.Millisecond)
		w.meter(renewal(thousand, "b", 1, 1000, 0)) // the key stays warm
		w.pass(700 * time.Millisecond)
		m := metered{message: message{id: "a", seq: 2, limit: thousand, ttl: time.Second, spent: 1050 * unit}}
		w.equal(w.meter(m).tokens, -50*unit)
	}},
}

// small: limits that have no rates to give.
var small = []scenario{
	{"five per minute", func(w *world) {
		l := per(5, time.Minute, 5)
		w.empty(l)
		for seq := int64(1); seq <= 40; seq++ {
			m := renewal(l, "a", seq, 100, 0)
			m.ttl = 30 * time.Second
			w.rated(w.meter(m), 0, 0, 0)
			w.pass(horizon)
		}
	}},
	{"less than two tokens per horizon", func(w *world) {
		for n, rate := range map[int64]int64{9: 0, 10: 10 * unit} {
			l := per(n, time.Second, 5)
			w.client().Del(w.Context(), w.key, "ttl "+w.key)
			w.empty(l)
			w.rated(w.meter(renewal(l, "a", 1, 100, 0)), rate, 5*unit*min(rate, 1), rate)
		}
	}},
	{"faster than the sums allow", func(w *world) {
		for num, rate := range map[int64]int64{4_000_000_000: 4_000_000_000 * unit, 4_000_000_001: 0} {
			l := limit{num: num, den: 1, burst: 1_000_000 * unit}
			w.client().Del(w.Context(), w.key, "ttl "+w.key)
			w.empty(l)
			m := renewal(l, "a", 1, 3_000_000_000, 0)
			m.rate = 4_000_000_001 * unit
			w.rated(w.meter(m), rate, l.burst*min(rate, 1), rate)
		}
	}},
}

// relimiting: another limit while leases are out.
var relimiting = []scenario{
	{"a lower limit is kept to from the next renewal on", func(w *world) {
		w.empty(thousand)
		w.meter(renewal(thousand, "a", 1, 1000, 0))
		l := per(500, time.Second, 50)
		w.rated(w.meter(renewal(l, "b", 1, 1000, 0)), 0, 0, 1000*unit)
		w.pass(horizon)
		w.equal(w.peek(l).tokens, 0) // and nothing is gained until then
		a := w.meter(renewal(l, "a", 2, 1000, 200))
		w.rated(a, 250*unit, 49*unit/2, 250*unit)
		w.equal(a.tokens, 0)
		w.rated(w.meter(renewal(l, "b", 2, 1000, 0)), 250*unit, 49*unit/2, 500*unit)
	}},
	{"a higher limit is given from the next renewal on", func(w *world) {
		w.empty(thousand)
		w.meter(renewal(thousand, "a", 1, 1000, 0))
		l := per(4000, time.Second, 400).newer()
		w.pass(10 * time.Millisecond)
		w.equal(w.peek(l).tokens, 30*unit) // 4 less the 1 that is lent
		m := renewal(l, "a", 2, 4000, 10)
		m.needs[0].count = 31
		w.rated(w.meter(m), 4000*unit, 400*unit, 4000*unit)
	}},
}

// field is a number of the stored hash; 0 if it is absent.
func (w *world) field(name string) int64 {
	w.Helper()
	n, err := w.client().HGet(w.Context(), w.key, name).Int64()
	if err != nil {
		return 0
	}
	return n
}
