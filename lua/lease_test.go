package lua_test

import "time"

// leases: how a message replaces what is recorded.
var leases = []scenario{
	{"a lump is at most half of what is left", func(w *world) {
		l := per(100, time.Second, 100)
		w.held(w.acquire(lump(l, "a", 1, 80)), 50, 50, 50)
		w.held(w.acquire(lump(l, "b", 2, 80)), 25, 25, 75)
		w.held(w.acquire(lump(l, "c", 3, 5)), 20, 5, 80)
		m := lump(l, "d", 4, 80)
		m.least = 11 * unit
		w.held(w.acquire(m), 20, 0, 80) // 10 would not be worth it
		m.seq, m.least = 5, 10*unit
		w.held(w.acquire(m), 10, 10, 90)
	}},
	{"nobody gets a lump while somebody is refused", func(w *world) {
		l := per(100, time.Second, 100)
		m := lump(l, "a", 1, 80)
		m.needs = []need{{n: 40, count: 3}}
		a := w.acquire(m)
		w.held(a, 20, 0, 0)
		w.equal(a.granted[0], 2)
	}},
	{"what is kept stays and the grant comes on top", func(w *world) {
		l := per(100, time.Second, 100)
		w.acquire(lump(l, "a", 1, 40))
		m := lump(l, "a", 2, 20)
		m.kept, m.spent = 10*unit, 30*unit
		w.held(w.acquire(m), 40, 30, 30)
	}},
	{"a returned lump comes back", func(w *world) {
		l := per(100, time.Second, 100)
		w.acquire(lump(l, "a", 1, 40))
		m := lump(l, "a", 2, 0)
		m.returned, m.spent = 30*unit, 10*unit
		w.held(w.acquire(m), 90, 0, 0)
		m.seq, m.returned, m.spent = 3, 30*unit, 0
		w.held(w.acquire(m), 90, 0, 0) // once
	}},
	{"part kept and part returned", func(w *world) {
		l := per(100, time.Second, 100)
		w.acquire(lump(l, "a", 1, 40))
		m := lump(l, "a", 2, 0)
		m.kept, m.returned, m.spent = 15*unit, 15*unit, 10*unit
		w.held(w.acquire(m), 75, 15, 15)
	}},
	{"more than the record is not held", func(w *world) {
		l := per(100, time.Second, 100)
		w.acquire(lump(l, "a", 1, 40))
		m := lump(l, "a", 2, 0)
		m.kept = 45 * unit
		w.held(w.acquire(m), 55, 40, 40) // and the 5 were charged
		other := lump(l, "b", 3, 0)
		other.kept, other.returned = 10*unit, 10*unit
		w.held(w.acquire(other), 55, 0, 40) // nothing is known of b
	}},
	{"what was overspent is charged", func(w *world) {
		l := per(100, time.Second, 100)
		w.acquire(lump(l, "a", 1, 40))
		m := lump(l, "a", 2, 0)
		m.kept, m.spent = 10*unit, 45*unit
		w.held(w.acquire(m), 45, 10, 10)
		m.seq, m.kept, m.spent = 3, 0, 1000*unit
		a := w.acquire(m)
		w.held(a, -100, 0, 0) // no debt exceeds a burst
		w.pass(time.Second)
		w.granted(w.acquire(ask(l, 1, 1)), 0, 0)
		w.pass(time.Second)
		w.granted(w.acquire(ask(l, 100, 1)), 0, 1)
	}},
	{"a lost grant is not given back", func(w *world) {
		l := per(100, time.Second, 100)
		w.acquire(lump(l, "a", 1, 40)) // the answer is lost, the holder holds nothing
		m := lump(l, "a", 2, 0)
		w.held(w.acquire(m), 60, 0, 0)
	}},
	{"an older sequence is refused", func(w *world) {
		l := per(100, time.Second, 100)
		w.acquire(lump(l, "a", 7, 40))
		for _, seq := range []int64{7, 6, 1} {
			m := lump(l, "a", seq, 10)
			m.kept, m.needs = 40*unit, []need{{n: 1, count: 1}}
			w.unchanged(func() { w.equal(w.acquire(m).status, stale) })
		}
		m := lump(l, "a", 8, 0)
		m.kept = 40 * unit
		w.held(w.acquire(m), 60, 40, 40)
		w.held(w.acquire(lump(l, "b", 1, 0)), 60, 0, 40) // another holder's numbers are its own
	}},
	{"an ended lease is neither kept nor returned", func(w *world) {
		l := per(1, time.Hour, 100)
		w.acquire(lump(l, "a", 1, 40))
		w.pass(500 * time.Millisecond)
		w.acquire(lump(l, "b", 2, 10)) // ends later: the key stays warm
		w.pass(500 * time.Millisecond)
		m := lump(l, "a", 3, 0)
		m.kept, m.returned, m.spent = 20*unit, 10*unit, 10*unit
		a := w.acquire(m)
		w.equal(a.lump, 0)
		w.equal(a.out, 10*unit)
		w.equal(a.tokens, 50*unit) // its room is free from now on
	}},
	{"rights out hold the refill back", func(w *world) {
		l := per(100, time.Second, 100)
		w.acquire(lump(l, "a", 1, 40))
		w.pass(900 * time.Millisecond)
		a := w.peek(l)
		w.equal(a.tokens, 60*unit)
		w.pass(100 * time.Millisecond) // the lease ends: from now on all may refill
		w.equal(w.peek(l).tokens, 60*unit)
		w.pass(10 * time.Millisecond)
		w.equal(w.peek(l).tokens, 61*unit)
		w.equal(w.acquire(ask(l, 1, 0)).out, 0)
	}},
	{"a reset leaves what is out", func(w *world) {
		l := per(100, time.Second, 100)
		m := lump(l, "a", 1, 40)
		m.needs = []need{{n: 20, count: 1}}
		w.held(w.acquire(m), 40, 40, 40)
		w.held(w.reset(l), 60, 0, 40)
		m = lump(l, "a", 2, 0)
		m.returned = 40 * unit
		w.held(w.acquire(m), 100, 0, 0)
	}},
	{"the demand of the holders is summed up", func(w *world) {
		l := per(100, time.Second, 100)
		m := lump(l, "a", 1, 10)
		m.demand = 7 * unit
		w.acquire(m)
		m.id, m.demand = "b", 5*unit
		w.equal(w.acquire(m).demand, 12*unit)
		m.seq, m.kept, m.demand = 2, 10*unit, 4*unit
		w.equal(w.acquire(m).demand, 11*unit)
		m.seq, m.kept, m.want, m.returned = 3, 0, 0, 20*unit
		w.equal(w.acquire(m).demand, 7*unit)
	}},
	{"a shorter lease does not end the former one early", func(w *world) {
		l := per(100, time.Second, 100)
		m := lump(l, "a", 1, 40)
		m.ttl = 20 * time.Second
		w.acquire(m)
		m = lump(l, "a", 2, 0)
		m.kept = 40 * unit
		w.equal(w.acquire(m).ttl, 1_000_000) // this answer is lost
		w.pass(19 * time.Second)
		w.equal(w.peek(l).out, 40*unit) // the holder may still spend
		a := w.acquire(ask(l, 1, 61))
		w.equal(a.granted[0], 60)
		w.equal(a.out, 40*unit)
		w.pass(time.Second)
		w.equal(w.peek(l).out, 0)
	}},
	{"a lease lasts half a minute at most", func(w *world) {
		l := per(100, time.Second, 100)
		m := lump(l, "a", 1, 40)
		m.ttl = time.Hour
		a := w.acquire(m)
		w.equal(a.ttl, 30_000_000)
		w.equal(a.lastEnd, 30_000_000)
	}},
}

// held fails unless these many whole tokens are at the root, in the holder's
// lease and out in all.
func (w *world) held(a answer, tokens, lump, out int64) {
	w.Helper()
	if a.status != ok || a.tokens != tokens*unit || a.lump != lump*unit || a.out != out*unit {
		w.Fatalf("%+v, want %d tokens, a lump of %d and %d out", a, tokens, lump, out)
	}
	if (a.ttl > 0) != (a.lump > 0) {
		w.Fatalf("a lease of %d for %d us", a.lump, a.ttl)
	}
}
