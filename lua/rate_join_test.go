package lua_test

import "time"

// joining: newcomers, and holders that go.
var joining = []scenario{
	{"a newcomer gets its part after the other's next renewal", func(w *world) {
		w.empty(thousand)
		w.meter(renewal(thousand, "a", 1, 3000, 0))
		a := w.meter(renewal(thousand, "b", 1, 1000, 0))
		w.rated(a, 0, 0, 1000*unit)
		w.equal(a.lump, 0)
		w.equal(a.out, 100*unit)
		w.equal(a.demand, 4000*unit)
		w.equal(a.ttl, 1_000_000)
		w.pass(horizon)
		w.rated(w.meter(renewal(thousand, "b", 2, 1000, 0)), 0, 0, 1000*unit)
		w.rated(w.meter(renewal(thousand, "a", 2, 3000, 200)), 750*unit, 3*99*unit/4, 750*unit)
		w.rated(w.meter(renewal(thousand, "b", 3, 1000, 0)), 250*unit, 99*unit/4, 1000*unit)
	}},
	{"a demand without a lease freezes nothing", func(w *world) {
		w.empty(thousand)
		w.meter(renewal(thousand, "a", 1, 1000, 0))
		w.meter(renewal(thousand, "dead", 1, 1000, 0))
		for seq := int64(2); seq <= 5; seq++ {
			w.pass(horizon)
			spent := int64(100)
			if seq == 2 {
				spent = 200
			}
			m := renewal(thousand, "a", seq, 1000, spent)
			m.needs, m.want = nil, noLump
			w.rated(w.meter(m), 500*unit, 99*unit/2, 500*unit)
		}
		w.equal(w.peek(thousand).tokens, 101*unit/2) // the root has the rest
		w.meter(metered{message: ask(thousand, 50, 1)})
		w.pass(horizon) // now its second is over
		w.meter(metered{message: ask(thousand, 50, 1)})
		w.rated(w.meter(renewal(thousand, "a", 6, 1000, 100)), 1000*unit, 199*unit/2, 1000*unit) // beside half a token of the root's
	}},
	{"what a holder returns is free at once", func(w *world) {
		w.empty(thousand)
		w.meter(renewal(thousand, "a", 1, 1000, 0))
		w.meter(renewal(thousand, "b", 1, 1000, 0))
		w.pass(horizon)
		m := metered{message: message{id: "a", seq: 2, limit: thousand, ttl: time.Second, returned: 30 * unit, spent: 170 * unit}}
		a := w.meter(m)
		w.rated(a, 0, 0, 0)
		w.equal(a.tokens, 30*unit)
		w.equal(a.ttl, 0)
		m = renewal(thousand, "b", 2, 1000, 0)
		m.needs[0].count = 31
		a = w.meter(m)
		w.rated(a, 1000*unit, 100*unit, 1000*unit)
		w.equal(a.granted[0], 30)
	}},
	{"a half returned is no more than was earned", func(w *world) {
		w.empty(thousand)
		w.meter(renewal(thousand, "a", 1, 1000, 0))
		w.pass(20 * time.Millisecond)
		m := metered{message: message{id: "a", seq: 2, limit: thousand, ttl: time.Second, returned: 100 * unit}}
		a := w.meter(m)
		w.equal(a.tokens, -60*unit) // 20 came back, 80 were never earned
	}},
	{"a rate ends with its lease, after a sweep", func(w *world) {
		w.empty(thousand)
		w.meter(renewal(thousand, "dead", 1, 1000, 0))
		w.pass(horizon)
		w.meter(renewal(thousand, "b", 1, 1000, 0)) // ends later: the key stays warm
		w.pass(4*horizon - time.Microsecond)
		w.rated(w.meter(renewal(thousand, "b", 2, 1000, 0)), 0, 0, 1000*unit)
		w.pass(time.Microsecond)
		// The message that sweeps has it.
		a := w.meter(renewal(thousand, "b", 3, 1000, 0))
		w.rated(a, 1000*unit, 100*unit, 1000*unit)
		w.equal(a.out, 100*unit)
		w.equal(a.demand, 1000*unit)
	}},
	{"with the last lease the rate of the root is whole", func(w *world) {
		w.empty(thousand)
		w.meter(renewal(thousand, "dead", 1, 1000, 0))
		w.pass(time.Second)
		w.equal(w.peek(thousand).rates, 0)
		w.pass(10 * time.Millisecond)
		a := w.peek(thousand)
		w.equal(a.tokens, 10*unit)
		w.equal(a.out, 0)
		w.equal(a.demand, 0)
	}},
	{"what is left of a demand goes with the last lease", func(w *world) {
		w.empty(thousand)
		w.meter(renewal(thousand, "a", 1, 1000, 0))
		w.meter(renewal(thousand, "b", 1, 1000, 0))
		w.pass(-time.Hour) // the records lie ahead, and are written anew
		a := w.meter(metered{message: message{id: "a", seq: 2, limit: thousand, ttl: time.Second}})
		w.rated(a, 0, 0, 0)
		w.equal(a.demand, 0)
		w.cold()
	}},
	{"too small a part of the burst leaves the part of the rate at the root", func(w *world) {
		l := per(1200, time.Second, 10)
		w.empty(l)
		w.rated(w.meter(renewal(l, "a", 1, 1000, 0)), 1200*unit, 10*unit, 1200*unit)
		a := w.meter(renewal(l, "b", 1, 200, 0)) // a sixth of 9 is less than 3
		w.rated(a, 0, 0, 1200*unit)
		w.equal(a.demand, 1200*unit)
		w.pass(horizon)
		w.rated(w.meter(renewal(l, "a", 2, 1000, 240)), 1000*unit, 75*unit/10, 1000*unit)
		w.pass(5 * time.Millisecond)
		w.equal(w.meter(renewal(l, "b", 2, 200, 0)).granted[0], 1)
	}},
	{"a little demand has its part at the root", func(w *world) {
		w.empty(thousand)
		w.meter(renewal(thousand, "a", 1, 9995, 0))
		// 0.5 per second are not worth a lease, but b's all the same.
		granted, seqA, seqB := int64(0), int64(1), int64(0)
		left := int64(0)
		for range 150 { // 30 s
			seqB++
			m := renewal(thousand, "b", seqB, 5, 0)
			granted += w.meter(m).granted[0]
			w.pass(horizon)
			seqA++
			m = renewal(thousand, "a", seqA, 9995, 0)
			m.needs, m.want = nil, noLump
			a := w.meter(m)
			if a.rate < 999*unit {
				w.Fatalf("a has a rate of %d", a.rate)
			}
			left = a.tokens
		}
		if granted < 13 || granted > 15 {
			w.Fatalf("%d granted in 30 s, %d left, want 15 at most and one or two less", granted, left)
		}
	}},
}
