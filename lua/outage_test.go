package lua_test

import "time"

// charged is a message that does nothing but charge so many tokens.
func charged(l limit, tokens int64) message {
	m := ask(l, 1, 0)
	m.needs, m.charge = nil, tokens*unit
	return m
}

// holding is a message of a holder with that demand among so many instances.
func holding(id string, seq, demand, live, peak int64) message {
	m := lump(hundred, id, seq, 2)
	m.demand, m.live, m.peak = demand*unit, live, peak
	return m
}

// hundred: 100 per second, as many at once.
var hundred = per(100, time.Second, 100)

// outages: what is charged afterwards, what was lost, the parts that holders go on
// with, and what is left to those who are cut off.
var outages = []scenario{
	{"a charge is taken, down to a debt of one burst", func(w *world) {
		w.equal(w.acquire(charged(hundred, 30)).tokens, 70*unit)
		w.equal(w.acquire(charged(hundred, 100)).tokens, -30*unit)
		w.equal(w.acquire(charged(hundred, 1000)).tokens, -100*unit)
		w.pass(time.Second)
		w.equal(w.acquire(ask(hundred, 1, 1)).granted[0], 0)
		w.pass(10 * time.Millisecond)
		w.equal(w.acquire(ask(hundred, 1, 1)).granted[0], 1)
	}},
	{"a charge comes before the requests of its message", func(w *world) {
		m := charged(hundred, 98)
		m.needs = []need{{n: 1, count: 5}}
		a := w.acquire(m)
		w.equal(a.granted[0], 2)
		w.equal(a.tokens, 0)
	}},
	{"what is given back fits beside what is out", func(w *world) {
		w.acquire(charged(hundred, 60))
		w.equal(w.acquire(charged(hundred, -20)).tokens, 60*unit)
		w.equal(w.acquire(lump(hundred, "a", 1, 30)).out, 30*unit)
		w.equal(w.acquire(charged(hundred, -1000)).tokens, 70*unit)
	}},
	{"what is given back pays a debt", func(w *world) {
		w.acquire(charged(hundred, 150))
		w.equal(w.acquire(charged(hundred, -20)).tokens, -30*unit)
	}},
	{"a lost bucket goes on where it was last seen", func(w *world) {
		m := ask(hundred, 1, 50)
		m.known, m.seen = true, 20*unit
		a := w.acquire(m)
		w.equal(a.granted[0], 20)
		w.equal(a.tokens, 0)
		if !a.lost {
			w.Fatalf("%+v, want it to say that the bucket was lost", a)
		}
		m.seq, m.seen = 2, 0
		w.pass(100 * time.Millisecond)
		if a = w.acquire(m); a.lost || a.granted[0] != 10 {
			w.Fatalf("%+v, want 10 granted of what is there", a)
		}
	}},
	{"a bucket that may have been full was not lost", func(w *world) {
		m := ask(hundred, 1, 1)
		m.known, m.seen = true, hundred.burst
		if a := w.acquire(m); a.lost || a.tokens != 99*unit {
			w.Fatalf("%+v, want 99 left of a full bucket", a)
		}
	}},
	{"nor one of which nothing is known", func(w *world) {
		if a := w.acquire(ask(hundred, 1, 1)); a.lost || a.tokens != 99*unit {
			w.Fatalf("%+v, want 99 left of a full bucket", a)
		}
	}},
	{"who is alone among instances leaves half of their parts to the others", func(w *world) {
		w.equal(w.acquire(holding("a", 1, 50, 4, 4)).part, 625_000) // 1 - 3/8
		w.equal(w.acquire(holding("a", 2, 50, 1, 1)).part, 1_000_000)
	}},
	{"parts follow the demand and add up to the whole", func(w *world) {
		w.equal(w.acquire(holding("a", 1, 90, 2, 2)).part, 750_000)
		w.equal(w.acquire(holding("b", 1, 10, 2, 2)).part, 100_000)
		w.equal(w.acquire(holding("a", 2, 90, 2, 2)).part, 900_000)
		w.equal(w.acquire(holding("b", 2, 90, 2, 2)).part, 100_000) // no more is left until the other renews
		w.equal(w.acquire(holding("a", 3, 90, 2, 2)).part, 500_000)
		w.equal(w.acquire(holding("b", 3, 90, 2, 2)).part, 500_000)
	}},
	{"who joins gets half of an equal part at once, and later what its demand is worth", func(w *world) {
		for seq := int64(1); seq < 4; seq++ {
			w.acquire(holding("a", seq, 50, 4, 4))
		}
		w.equal(w.acquire(holding("b", 1, 50, 4, 4)).part, 125_000)
		w.equal(w.acquire(holding("a", 4, 50, 4, 4)).part, 375_000) // half of 1 - 2/8
		w.equal(w.acquire(holding("b", 2, 50, 4, 4)).part, 375_000)
	}},
	{"who asks for next to nothing keeps a sixteenth of an equal part", func(w *world) {
		w.acquire(holding("a", 1, 10_000, 4, 4))
		w.equal(w.acquire(holding("b", 1, 1, 4, 4)).part, 15_625)
	}},
	{"a part returns with its lease", func(w *world) {
		w.acquire(holding("a", 1, 90, 2, 2))
		m := holding("a", 2, 0, 2, 2)
		m.want, m.returned = 0, 2*unit
		w.equal(w.acquire(m).part, 0)
		w.cold()
		w.equal(w.acquire(holding("b", 1, 10, 2, 2)).part, 750_000)
	}},
	{"and with its end", func(w *world) {
		w.acquire(holding("a", 1, 90, 2, 2))
		w.pass(500 * time.Millisecond)
		w.equal(w.acquire(holding("b", 1, 10, 2, 2)).part, 100_000)
		w.pass(600 * time.Millisecond)
		w.acquire(holding("b", 2, 10, 2, 2)) // sweeps after it has its part
		w.equal(w.acquire(holding("b", 3, 10, 2, 2)).part, 750_000)
	}},
	{"more holders than instances share the whole", func(w *world) {
		w.equal(w.acquire(holding("a", 1, 50, 1, 1)).part, 1_000_000)
		w.equal(w.acquire(holding("b", 1, 50, 1, 1)).part, 0) // until the other renews
		w.equal(w.acquire(holding("a", 2, 50, 1, 1)).part, 500_000)
		w.equal(w.acquire(holding("b", 2, 50, 1, 1)).part, 500_000)
	}},
	{"while one of four is cut off the bucket gains three quarters", func(w *world) {
		m := ask(hundred, 100, 1)
		w.acquire(m)
		m.live, m.peak = 3, 4
		m.needs[0] = need{n: 1, count: 1000}
		w.pass(400 * time.Millisecond)
		m.seq++
		w.equal(w.quietly(m).granted[0], 30)
		w.pass(10 * time.Second)
		m.seq++
		w.equal(w.quietly(m).granted[0], 75) // and holds three quarters
		m.live = 4
		w.pass(400 * time.Millisecond)
		m.seq++
		w.equal(w.quietly(m).granted[0], 40)
	}},
	{"what the bucket has it keeps", func(w *world) {
		m := ask(hundred, 1, 5)
		w.acquire(m)
		m.seq, m.live, m.peak = 2, 1, 4
		w.pass(500 * time.Millisecond)
		w.equal(w.quietly(m).tokens, 90*unit)
		w.pass(500 * time.Millisecond)
		m.seq = 3
		w.equal(w.quietly(m).tokens, 85*unit)
	}},
	{"a new bucket starts with its part, and lives until it has that", func(w *world) {
		m := ask(hundred, 1, 1000)
		m.live, m.peak = 1, 4
		w.equal(w.quietly(m).granted[0], 25)
		if ttl := w.ttl(w.key); ttl < 4000 {
			w.Fatalf("the key lives for %d ms, and would come back full", ttl)
		}
	}},
	{"rates add up to the part", func(w *world) {
		w.empty(thousand)
		m := renewal(thousand, "a", 1, 3000, 0)
		m.live, m.peak = 3, 4
		w.equal(w.quietly(m).rate, 750*unit)
	}},
}
