package lua_test

import (
	"slices"
	"time"
)

// counting: what is granted, and that exactly that is charged.
var counting = []scenario{
	{"a sequence counts down to zero", func(w *world) {
		l := per(10, time.Second, 10)
		for i := range int64(10) {
			m := ask(l, 1, 1)
			m.seq = i + 1
			w.granted(w.acquire(m), (9-i)*unit, 1)
		}
		w.granted(w.acquire(ask(l, 1, 1)), 0, 0)
		w.pass(99_999 * time.Microsecond)
		w.granted(w.acquire(ask(l, 1, 1)), 999_990, 0)
		w.pass(time.Microsecond)
		w.granted(w.acquire(ask(l, 1, 1)), 0, 1)
	}},
	{"a million per hour", func(w *world) {
		w.granted(w.acquire(ask(per(1_000_000, time.Hour, 1_000_000), 1, 1)), 999_999*unit, 1)
	}},
	{"a billion per second", func(w *world) {
		l := per(1_000_000_000, time.Second, 1_000_000_000)
		w.granted(w.acquire(ask(l, 1_000_000_000, 1)), 0, 1)
		w.pass(time.Microsecond)
		w.granted(w.acquire(ask(l, 1, 1001)), 0, 1000)
	}},
	{"one per 366 days", func(w *world) {
		l := per(1, 366*24*time.Hour, 1)
		w.granted(w.acquire(ask(l, 1, 1)), 0, 1)
		w.pass(366*24*time.Hour - time.Microsecond)
		w.granted(w.acquire(ask(l, 1, 1)), 999_999, 0)
		w.pass(time.Microsecond)
		w.granted(w.acquire(ask(l, 1, 1)), 0, 1)
	}},
	{"seven per three seconds", func(w *world) {
		l := per(7, 3*time.Second, 7)
		w.granted(w.acquire(ask(l, 7, 1)), 0, 1)
		// The fraction of a micro-token is kept: 3,000,000 steps of 7/3.
		for range 5 {
			w.pass(time.Microsecond)
			w.acquire(ask(l, 7, 1))
		}
		w.pass(3*time.Second - 6*time.Microsecond)
		w.granted(w.acquire(ask(l, 7, 1)), 6_999_997, 0)
		w.pass(time.Microsecond)
		w.granted(w.acquire(ask(l, 7, 1)), 0, 1)
	}},
	{"a fraction that does not fit is gone", func(w *world) {
		l := per(7, 3*time.Second, 2)
		w.acquire(ask(l, 2, 1))
		w.pass(2 * time.Microsecond)
		w.granted(w.acquire(ask(l, 2, 1)), 4, 0) // and two thirds
		w.pass(857_141 * time.Microsecond)       // full, and a third over
		w.granted(w.acquire(ask(l, 2, 1)), 0, 1)
		if f, present := w.state()["f"]; present {
			w.Fatalf("%s/3 of a micro-token came on top of a full bucket", f)
		}
	}},
	{"a refusal changes no tokens", func(w *world) {
		l := per(10, time.Second, 10)
		w.granted(w.acquire(ask(l, 7, 1)), 3*unit, 1)
		w.unchanged(func() { w.granted(w.acquire(ask(l, 4, 1)), 3*unit, 0) })
		w.unchanged(func() { w.granted(w.acquire(ask(l, 11, 1)), 3*unit, 0) })
		w.granted(w.acquire(ask(l, 3, 1)), 0, 1)
	}},
	{"the whole burst at once", func(w *world) {
		l := per(10, time.Second, 10)
		w.granted(w.acquire(ask(l, 1, 1)), 9*unit, 1)
		w.granted(w.acquire(ask(l, 10, 1)), 9*unit, 0)
		w.pass(100 * time.Millisecond)
		w.granted(w.acquire(ask(l, 10, 1)), 0, 1)
	}},
	{"requests are decided in their order", func(w *world) {
		m := ask(per(10, time.Second, 10), 1, 1)
		m.needs = []need{{n: 4, count: 3}, {n: 3, count: 1}, {n: 1, count: 5}}
		w.granted(w.acquire(m), 0, 2, 0, 2)
	}},
	{"nobody passes one who queues", func(w *world) {
		m := ask(per(10, time.Second, 10), 1, 1)
		m.needs = []need{{n: 4, count: 1}, {n: 7, count: 1, queue: true}, {n: 1, count: 5}, {n: 1, count: 1, queue: true}}
		w.granted(w.acquire(m), 6*unit, 1, 0, 0, 0)
		m.needs = []need{{n: 2, count: 4, queue: true}, {n: 1, count: 1}}
		w.granted(w.acquire(m), 0, 3, 0)
		w.pass(time.Second)
		m.needs = []need{{n: 2, count: 4, queue: true}, {n: 1, count: 1}}
		w.granted(w.acquire(m), 1*unit, 4, 1)
	}},
	{"a message without requests changes nothing but the time", func(w *world) {
		l := per(10, time.Second, 10)
		w.acquire(ask(l, 10, 1))
		w.pass(300 * time.Millisecond)
		m := ask(l, 1, 1)
		m.needs = nil
		w.granted(w.acquire(m), 3*unit)
		w.granted(w.acquire(ask(l, 3, 1)), 0, 1)
	}},
	{"100 per second asked every 15 ms", func(w *world) {
		l := per(100, time.Second, 1)
		granted := w.acquire(ask(l, 1, 1)).granted[0]
		for range 133 { // 1.995 s
			w.pass(15 * time.Millisecond)
			granted += w.acquire(ask(l.newer().withBurst(2), 1, 9)).granted[0]
		}
		if granted != 1+199 {
			w.Fatalf("%d granted in 1.995 s, want 200", granted)
		}
	}},
	{"a reset fills the bucket", func(w *world) {
		l := per(7, 3*time.Second, 7)
		w.acquire(ask(l, 7, 1))
		w.pass(time.Microsecond)
		w.equal(w.reset(l).tokens, 7*unit)
		w.granted(w.acquire(ask(l, 7, 1)), 0, 1)
	}},
	{"a reset of a missing key makes a full one", func(w *world) {
		l := per(10, time.Second, 10)
		w.equal(w.reset(l).tokens, 10*unit)
	}},
}

func (l limit) withBurst(tokens int64) limit {
	l.burst = tokens * unit
	return l
}

// granted fails unless the answer grants these counts and leaves the tokens.
func (w *world) granted(a answer, tokens int64, counts ...int64) {
	w.Helper()
	if a.status != ok || a.tokens != tokens || !slices.Equal(a.granted, counts) {
		w.Fatalf("status %d, %d tokens, granted %v, want 0, %d, %v", a.status, a.tokens, a.granted, tokens, counts)
	}
}

func (w *world) equal(got, want int64) {
	w.Helper()
	if got != want {
		w.Fatalf("got %d, want %d", got, want)
	}
}
