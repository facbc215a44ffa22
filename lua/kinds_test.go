package lua_test

import "time"

// kinds of needs: of low priority, booked ahead, held on lease.
var kinds = []scenario{
	{"low priority leaves the last fifth", func(w *world) {
		l := per(1, time.Hour, 10)
		m := ask(l, 1, 12)
		m.reserve, m.needs[0].low = 200, true
		w.granted(w.acquire(m), 2*unit, 8)
		m.needs = []need{{n: 1, count: 1, low: true}, {n: 1, count: 1}, {n: 1, count: 1, low: true}, {n: 1, count: 2}}
		m.seq++
		w.granted(w.acquire(m), 0, 0, 1, 0, 1)
	}},
	{"where a fifth is less than a token nothing is kept", func(w *world) {
		m := ask(per(1, time.Hour, 4), 1, 5)
		m.reserve, m.needs[0].low = 200, true
		w.granted(w.acquire(m), 0, 4)
	}},
	{"a large request of low priority needs the reserve besides", func(w *world) {
		m := ask(per(1, time.Hour, 10), 9, 1)
		m.reserve, m.needs[0].low = 200, true
		w.granted(w.acquire(m), 10*unit, 0)
		m.seq, m.needs[0].n = 2, 8
		w.granted(w.acquire(m), 2*unit, 1)
	}},
	{"a refusal of low priority holds nobody back", func(w *world) {
		m := ask(per(1, time.Hour, 100), 90, 1)
		m.reserve = 200
		m.needs[0].low, m.needs[0].queue = true, true
		m.needs = append(m.needs, need{n: 50, count: 1})
		m.want = 20 * unit
		a := w.acquire(m)
		w.held(a, 35, 15, 15) // half of what is above the reserve
		w.equal(a.granted[0], 0)
		w.equal(a.granted[1], 1)
	}},
	{"a lump leaves the reserve", func(w *world) {
		l := per(1, time.Hour, 100)
		m := lump(l, "a", 1, 90)
		m.reserve = 200
		w.held(w.acquire(m), 60, 40, 40)
		m.seq, m.kept, m.returned = 2, 0, 0
		m.spent = 40 * unit
		w.held(w.acquire(m), 40, 20, 20)
		for seq := int64(3); seq < 30; seq++ {
			m.seq, m.spent = seq, 20*unit
			a := w.acquire(m)
			w.equal(max(a.tokens, 20*unit), a.tokens)
			m.spent = a.lump
		}
	}},
	{"a booking goes into a debt of one burst", func(w *world) {
		l := per(10, time.Second, 10)
		m := ask(l, 5, 5)
		m.needs[0].book = true
		w.granted(w.acquire(m), -10*unit, 4)
		m.seq++
		w.granted(w.acquire(m), -10*unit, 0)
		w.granted(w.acquire(ask(l, 1, 1)), -10*unit, 0)
		w.pass(1100 * time.Millisecond)
		w.granted(w.acquire(ask(l, 1, 2)), 0, 1)
		w.pass(time.Second)
		m.seq++
		m.needs[0].n = 10
		w.granted(w.acquire(m), -10*unit, 2)
	}},
	{"a booking of low priority leaves the reserve of the debt", func(w *world) {
		m := ask(per(1, time.Hour, 10), 1, 20)
		m.reserve, m.needs[0].book, m.needs[0].low = 200, true, true
		w.granted(w.acquire(m), -8*unit, 18)
	}},
	{"who queues is before who books", func(w *world) {
		m := ask(per(1, time.Hour, 10), 8, 2)
		m.needs[0].queue = true
		m.needs = append(m.needs, need{n: 1, count: 1, book: true})
		w.granted(w.acquire(m), 2*unit, 1, 0)
	}},
	{"what is held is out until it is spent or given back", func(w *world) {
		l := per(10, time.Second, 10)
		m := ask(l, 3, 1)
		m.id, m.needs[0].hold = "a", true
		w.held(w.acquire(m), 7, 3, 3)
		w.pass(900 * time.Millisecond)
		w.equal(w.peek(l).tokens, 7*unit) // its room is not refilled
		back := lump(l, "a", 2, 0)
		back.returned = 3 * unit
		w.held(w.acquire(back), 10, 0, 0)
		m.seq = 3
		w.held(w.acquire(m), 7, 3, 3)
		used := lump(l, "a", 4, 0)
		used.spent = 3 * unit
		w.held(w.acquire(used), 7, 0, 0)
	}},
	{"what is held comes on top of what was kept", func(w *world) {
		l := per(1, time.Hour, 100)
		w.held(w.acquire(lump(l, "a", 1, 20)), 80, 20, 20)
		m := lump(l, "a", 2, 10)
		m.kept, m.spent = 5*unit, 15*unit
		m.needs = []need{{n: 7, count: 2, hold: true}, {n: 1, count: 1}}
		w.held(w.acquire(m), 55, 29, 29)
	}},
	{"what is held has a lease of its own while somebody waits for much", func(w *world) {
		l := per(10, time.Second, 10)
		m := ask(l, 4, 3)
		m.needs[0].queue = true
		w.granted(w.acquire(m), 2*unit, 2)
		m = lump(l, "b", 1, 0)
		m.needs = []need{{n: 2, count: 1, hold: true}}
		a := w.acquire(m)
		w.held(a, 0, 2, 2)
		w.equal(a.ttl, 1_000_000)
	}},
	{"a booking waits for room beside what is on lease", func(w *world) {
		l := per(100, time.Second, 100)
		w.held(w.acquire(lump(l, "a", 1, 40)), 60, 40, 40)
		m := ask(l, 61, 1)
		m.needs[0].book = true
		w.granted(w.acquire(m), 60*unit, 0)
		renewal := lump(l, "a", 2, 10) // nothing more is lent meanwhile
		renewal.kept, renewal.spent = 10*unit, 30*unit
		w.held(w.acquire(renewal), 60, 10, 10)
		m.seq++
		w.granted(w.acquire(m), -1*unit, 1)
		w.pass(9999 * time.Microsecond)
		m = lump(l, "b", 1, 5)
		m.demand = unit
		a := w.acquire(m)
		w.equal(a.tokens, -100)
		w.equal(a.lump, 0)
		w.pass(time.Second + time.Microsecond)
		m.seq++
		w.equal(w.acquire(m).lump, 5*unit)
	}},
	{"what is held is never booked", func(w *world) {
		m := ask(per(1, time.Hour, 10), 6, 2)
		m.needs[0].hold, m.needs[0].book = true, true
		w.held(w.acquire(m), 4, 6, 6)
	}},
	{"a charge goes into a debt of one burst, and what is beyond is told", func(w *world) {
		l := per(1, time.Hour, 10)
		m := ask(l, 4, 1)
		m.charge = 9 * unit
		a := w.acquire(m)
		w.granted(a, unit, 0)
		w.equal(a.beyond, 0)
		m.seq, m.charge = 2, 13*unit
		a = w.acquire(m)
		w.granted(a, -10*unit, 0)
		w.equal(a.beyond, 2*unit)
		m.seq, m.charge = 3, -30*unit
		w.granted(w.acquire(m), 6*unit, 1)
	}},
}
