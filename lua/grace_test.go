package lua_test

import "time"

// gracing: a limit that nobody confirms stands for as long as the first message
// that asks for another one says.
var gracing = []scenario{
	{"a loser alone takes over after the time of its message", func(w *world) {
		for _, c := range contests {
			for ttl, grace := range map[time.Duration]time.Duration{time.Second: time.Second, 500 * time.Millisecond: 500 * time.Millisecond, 40 * time.Second: 30 * time.Second} {
				w.forget()
				w.wins(c.winner, c.winner)
				w.pass(time.Minute) // how long ago the winner was there is no matter
				w.acquire(ask(c.winner, c.winner.burst/unit, 1))
				m := ask(c.loser, 1, 0)
				m.ttl = ttl
				w.equal(w.acquire(m).status, other)
				w.equal(w.field("g"), w.now+grace.Microseconds())
				w.pass(grace - time.Microsecond)
				if w.ttl(w.key) == -2 { // full, and forgotten: there is no winner any more
					continue
				}
				w.equal(w.acquire(m).status, other)
				w.pass(time.Microsecond)
				w.wins(c.loser, c.loser)
				w.wins(c.winner, c.winner) // until it is back
			}
		}
	}},
	{"who else loses neither lengthens nor shortens it", func(w *world) {
		winner, first, second := per(10, time.Second, 100).of(9), per(20, time.Second, 100), per(30, time.Second, 100)
		w.acquire(ask(winner, 100, 1))
		w.wins(first, winner)
		w.pass(900 * time.Millisecond)
		m := ask(second, 1, 0)
		m.ttl = 20 * time.Second
		w.equal(w.acquire(m).status, other)
		m.ttl = 500 * time.Millisecond
		w.equal(w.acquire(m).status, other)
		w.pass(100*time.Millisecond - time.Microsecond)
		w.wins(second, winner)
		w.pass(time.Microsecond)
		w.wins(second, second) // who comes first takes over, and
		w.wins(first, first)   // the rest is between those who are there
		w.wins(second, first)
	}},
	{"a message that confirms the winner restarts the time", func(w *world) {
		winner, loser := per(10, time.Second, 1000).of(2), per(100, time.Second, 1000).of(1)
		w.acquire(ask(winner, 1000, 1))
		w.wins(loser, winner)
		for range 20 { // the winner comes once in 900 ms
			w.pass(900 * time.Millisecond)
			w.wins(loser, winner)
			w.wins(winner, winner)
			w.wins(loser, winner)
			w.equal(w.field("g"), w.now+1_000_000)
		}
		w.pass(time.Second)
		w.wins(loser, loser)
	}},
	{"one that beats both ends the time", func(w *world) {
		winner, loser, best := per(10, time.Second, 100).of(2), per(100, time.Second, 100).of(1), per(50, time.Second, 100).of(3)
		w.acquire(ask(winner, 100, 1))
		w.wins(loser, winner)
		w.pass(500 * time.Millisecond)
		w.wins(best, best)
		w.wins(loser, best)
		w.equal(w.field("g"), w.now+1_000_000)
	}},
	{"a loser's peeks and resets begin nothing", func(w *world) {
		winner, loser := per(1, time.Minute, 100), per(100, time.Second, 100)
		w.acquire(ask(winner, 100, 1))
		for range 50 {
			w.pass(time.Second)
			w.unchanged(func() { w.equal(w.peek(loser).status, other) })
		}
		for range 10 {
			a := w.reset(loser)
			w.equal(a.status, other)
			w.equal(a.tokens, winner.burst)
			if a.applies != winner {
				w.Fatalf("%+v applies, want %+v", a.applies, winner)
			}
			w.fields(winner, false)
			w.pass(900 * time.Millisecond)
		}
		w.wins(loser, winner)
	}},
	{"a loser's peeks and resets change nothing of the time", func(w *world) {
		winner, loser := per(1, time.Minute, 100), per(100, time.Second, 100)
		w.acquire(ask(winner, 100, 1))
		w.wins(loser, winner)
		end := w.field("g")
		for range 9 {
			w.pass(100 * time.Millisecond)
			w.unchanged(func() { w.peek(loser) })
			w.reset(loser)
			w.equal(w.field("g"), end)
		}
		w.unchanged(func() { w.equal(w.peek(winner).status, ok) }) // a look confirms nothing
		w.pass(100*time.Millisecond - time.Microsecond)
		w.equal(w.peek(loser).status, other)
		w.pass(time.Microsecond)
		w.unchanged(func() { w.equal(w.peek(loser).status, ok) }) // what would be; nobody has taken over
		w.unchanged(func() { w.equal(w.peek(winner).status, ok) })
		w.wins(winner, winner)
	}},
	{"a reset of the winner is a word of it", func(w *world) {
		winner, loser := per(1, time.Minute, 100), per(100, time.Second, 100)
		w.acquire(ask(loser, 100, 1))
		w.equal(w.reset(winner).status, ok)
		w.acquire(ask(winner, 100, 1))
		w.wins(loser, winner)
		w.pass(900 * time.Millisecond)
		w.equal(w.reset(winner).status, ok)
		w.pass(900 * time.Millisecond)
		w.wins(loser, winner)
		w.equal(w.field("g"), w.now+1_000_000)
	}},
	{"a clock set back far begins the time anew", func(w *world) {
		for _, back := range []time.Duration{30 * time.Second, time.Hour} {
			winner, loser := per(1, time.Minute, 100), per(100, time.Second, 100)
			w.forget()
			w.acquire(ask(winner, 100, 1))
			w.wins(loser, winner)
			w.pass(-back)
			w.unchanged(func() { w.equal(w.peek(loser).status, other) })
			w.wins(loser, winner)
			w.equal(w.field("g"), w.now+1_000_000)
			w.pass(time.Second)
			w.wins(loser, loser)
		}
	}},
	{"a clock set back a little ends the time within half a minute", func(w *world) {
		winner, loser := per(1, time.Minute, 100), per(100, time.Second, 100)
		w.acquire(ask(winner, 100, 1))
		w.wins(loser, winner)
		end := w.field("g")
		w.pass(-29 * time.Second)
		w.wins(loser, winner)
		w.equal(w.field("g"), end)
		w.pass(30*time.Second - time.Microsecond)
		w.wins(loser, winner)
		w.pass(time.Microsecond)
		w.wins(loser, loser)
	}},
	{"a clock set forward ends the time, and the winner takes its place again", func(w *world) {
		winner, loser := per(1, 24*time.Hour, 100), per(100, time.Second, 100)
		w.acquire(ask(winner, 100, 1))
		w.wins(loser, winner)
		w.pass(time.Hour)
		w.wins(loser, loser)
		w.wins(winner, winner)
		w.wins(loser, winner)
	}},
	{"a late message of a loser begins nothing", func(w *world) {
		winner, loser := per(1, time.Minute, 100), per(100, time.Second, 100)
		w.acquire(lump(winner, "a", 5, 10))
		m := lump(loser, "a", 4, 10)
		w.unchanged(func() { w.equal(w.acquire(m).status, stale) })
	}},
}
