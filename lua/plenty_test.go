package lua_test

import "time"

// left takes from a full bucket of thousand all but so many tokens.
func (w *world) left(tokens int64) {
	w.Helper()
	m := metered{message: ask(thousand, 1, 100-tokens)}
	w.equal(w.meter(m).tokens, tokens*unit)
}

// wish is a message of a holder that asks for a lump, and would have a rate.
func wish(id string, seq, demand, want int64) metered {
	return metered{message: message{
		id: id, seq: seq, limit: thousand, ttl: time.Second, demand: demand * unit, want: want * unit,
	}, rate: thousand.top(), burst: thousand.burst}
}

// got fails unless the holder has that lump, in tokens, that rate and burst, and
// so many tokens are left at the root and out in all.
func (w *world) got(a answer, lump, rate, burst, tokens, out int64) {
	w.Helper()
	if a.status != ok || a.lump != lump*unit || a.rate != rate*unit || a.burst != burst*unit || a.tokens != tokens*unit || a.out != out*unit {
		w.Fatalf("%+v, want a lump of %d, a rate of %d up to %d, and %d left and %d out", a, lump, rate, burst, tokens, out)
	}
}

// plentiful: what a holder gets that asks for more than it has.
var plentiful = []scenario{
	{"what is at most half of the rest is lent, with no rate", func(w *world) {
		w.got(w.meter(wish("a", 1, 1000, 50)), 50, 0, 0, 50, 50)
		w.got(w.meter(wish("b", 1, 1000, 25)), 25, 0, 0, 25, 75) // whoever else there is
	}},
	{"half of the rest is lent to one who is alone, where there is no room for a rate", func(w *world) {
		w.got(w.meter(wish("a", 1, 1000, 51)), 50, 0, 0, 50, 50)
	}},
	{"only if it is worth having", func(w *world) {
		m := wish("a", 1, 1000, 51)
		m.least = 51 * unit
		w.got(w.meter(m), 0, 0, 0, 100, 0)
		w.cold()
	}},
	{"only if nobody else is there", func(w *world) {
		w.got(w.meter(wish("b", 1, 1000, 10)), 10, 0, 0, 90, 10)
		a := w.meter(wish("a", 1, 1000, 46))
		w.got(a, 0, 0, 0, 90, 10)
		w.equal(a.demand, 2000*unit) // it counts from now on, so that b makes room
		w.equal(a.ttl, 1_000_000)
		w.got(w.meter(wish("a", 2, 1000, 45)), 45, 0, 0, 45, 55)
	}},
	{"the own lease is nobody else", func(w *world) {
		w.got(w.meter(wish("a", 1, 1000, 40)), 40, 0, 0, 60, 40)
		m := wish("a", 2, 1000, 31)
		m.kept = 10 * unit
		m.spent = 30 * unit
		w.got(w.meter(m), 40, 1000, 40, 30, 40) // there is room for a rate now
		m.seq, m.kept, m.spent = 3, 0, 40*unit
		w.got(w.meter(m), 15, 1000, 70, 15, 70)
	}},
	{"half of what is left goes along with a rate", func(w *world) {
		w.left(40)
		w.got(w.meter(wish("a", 1, 1000, 100)), 20, 1000, 60, 20, 60)
	}},
	{"in whole tokens", func(w *world) {
		w.left(41)
		w.got(w.meter(wish("a", 1, 1000, 100)), 20, 1000, 59, 21, 59)
	}},
	{"no more than is wanted, however little is worth having", func(w *world) {
		w.left(9)
		m := wish("a", 1, 1000, 5)
		m.least = 5 * unit
		w.got(w.meter(m), 4, 1000, 91, 5, 91)
		w.forget()
		w.left(9)
		m = wish("a", 2, 1000, 5)
		m.needs = []need{{n: 10, count: 1}}
		w.got(w.meter(m), 5, 1000, 91, 4, 91)
	}},
	{"all that is left goes along with a rate for one who is refused", func(w *world) {
		w.left(40)
		m := wish("a", 1, 1000, 100)
		m.needs = []need{{n: 50, count: 1}}
		a := w.meter(m)
		w.got(a, 40, 1000, 60, 0, 60)
		w.equal(a.granted[0], 0)
	}},
	{"a lump beyond the burst of the rate is out as it is", func(w *world) {
		w.left(80)
		w.got(w.meter(wish("a", 1, 1000, 90)), 40, 1000, 20, 40, 40)
	}},
	{"a part goes along with a part of the rate", func(w *world) {
		w.left(40)
		m := wish("b", 1, 1000, 5)
		w.got(w.meter(m), 5, 0, 0, 35, 5)
		// Of equal demand: 99/2 of the burst.
		a := w.meter(wish("a", 1, 1000, 100))
		w.equal(a.lump, 17*unit)
		w.equal(a.rate, 500*unit)
		w.equal(a.burst, 99*unit/2)
		w.equal(a.tokens, 18*unit)
		w.equal(a.out, 5*unit+99*unit/2)
	}},
	{"one who is refused gets no lump without a rate", func(w *world) {
		w.left(40)
		m := wish("a", 1, 1000, 10)
		m.rate, m.needs = 0, []need{{n: 50, count: 1}}
		w.got(w.meter(m), 0, 0, 0, 40, 0)
		w.cold()
	}},
	{"nothing is lent while the root fills up for somebody", func(w *world) {
		w.empty(thousand)
		w.meter(wish("b", 1, 1000, 100))
		m := wish("a", 1, 1000, 100)
		m.needs = []need{{n: 80, count: 1, queue: true}}
		w.meter(m)
		m = wish("b", 2, 1000, 0)
		m.spent = 0
		w.meter(m) // gives the rate back
		w.pass(70 * time.Millisecond)
		a := w.meter(wish("c", 1, 1000, 2))
		w.got(a, 0, 0, 0, 70, 0)
		w.pass(930 * time.Millisecond)
		w.got(w.meter(wish("c", 2, 1000, 2)), 2, 0, 0, 98, 2)
	}},
	{"who wants nothing gets nothing", func(w *world) {
		w.left(40)
		w.got(w.meter(wish("a", 1, 1000, 0)), 0, 0, 0, 40, 0)
		w.cold()
	}},
	{"a little want gets a rate where the root has nothing, and no lump", func(w *world) {
		w.left(1)
		m := wish("a", 1, 1000, 1)
		m.want = noLump
		w.got(w.meter(m), 0, 1000, 99, 1, 99)
	}},
}
