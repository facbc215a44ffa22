package lua_test

import "time"

// lifetimes: keys end when they have nothing left to say, and not before. That
// each save sets the right time to live is checked with every state.
var lifetimes = []scenario{
	{"a key ends a second after it is full", func(w *world) {
		l := per(1, 1900*time.Millisecond, 3)
		w.acquire(ask(l, 3, 1))
		w.equal(w.ttl(w.key), 3*1900+1000)
		w.pass(3*1900*time.Millisecond + time.Second - time.Millisecond)
		w.equal(w.peek(l).tokens, 3*unit)
		w.equal(w.ttl(w.key), 1)
		w.pass(time.Millisecond)
		w.equal(w.ttl(w.key), -2)
		w.equal(w.peek(l).tokens, 3*unit)
	}},
	{"the end of a key gives nothing away", func(w *world) {
		l := per(1, 1900*time.Millisecond, 1)
		granted := int64(0)
		for range 12_000 / 100 {
			granted += w.acquire(ask(l, 1, 1)).granted[0]
			w.pass(100 * time.Millisecond)
		}
		w.equal(granted, 7) // at 0, 1.9, …, 11.4 s
	}},
	{"a year is a lifetime like any other", func(w *world) {
		l := per(1, 366*24*time.Hour, 2)
		w.acquire(ask(l, 2, 1))
		w.equal(w.ttl(w.key), 2*366*24*3600*1000+1000)
	}},
	{"a key outlives its leases", func(w *world) {
		l := per(1_000_000, time.Second, 100)
		w.acquire(lump(l, "a", 1, 40))
		w.equal(w.ttl(w.key), 1000+1000+1) // the end, what is out, rounded up, and a second
		w.pass(time.Second - time.Microsecond)
		w.equal(w.peek(l).out, 40*unit)
	}},
	{"a debt counts", func(w *world) {
		l := per(100, time.Second, 100)
		w.acquire(lump(l, "a", 1, 40))
		m := lump(l, "a", 2, 0)
		m.spent = 1000 * unit
		w.acquire(m)
		w.equal(w.ttl(w.key), 2*1000+1000)
	}},
	{"a missing lifetime is repaired by acquire and reset alone", func(w *world) {
		l := per(10, time.Second, 10)
		w.acquire(ask(l, 10, 1))
		w.persist(w.key)
		w.equal(w.ttl(w.key), -1)
		w.peek(l)
		w.equal(w.ttl(w.key), -1)
		w.granted(w.acquire(ask(l, 1, 1)), 0, 0)
		w.equal(w.ttl(w.key), 2000)
		w.persist(w.key)
		w.reset(l)
		w.equal(w.ttl(w.key), 1000)
	}},
	{"a peek writes nothing", func(w *world) {
		l := per(7, 3*time.Second, 7)
		w.equal(w.peek(l).tokens, 7*unit)
		w.equal(int64(len(w.state())), 0)
		w.acquire(ask(l, 5, 1))
		w.acquire(lump(l, "a", 1, 1))
		for range 4 {
			w.pass(400 * time.Millisecond) // the lease ends under way
			w.unchanged(func() { w.peek(l) })
		}
		w.unchanged(func() { w.peek(per(1, time.Hour, 5)) })
	}},
}
