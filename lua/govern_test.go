package lua_test

import "time"

// wins fails unless l applies where asked is asked for, and says why it is.
func (w *world) wins(asked, l limit) {
	w.Helper()
	a := w.acquire(ask(asked, 1, 0))
	if got := a.under(asked); got != l || a.status == other && l == asked {
		w.Fatalf("%+v applies where %+v is asked for, want %+v", got, asked, l)
	}
	w.fields(l, a.status == other)
}

// fields fails unless the key has its cold form under that limit, and a field more
// while the limit stands unconfirmed.
func (w *world) fields(l limit, stands bool) {
	w.Helper()
	state := w.state()
	fields := 3
	if _, there := state["f"]; there {
		fields++
	}
	if stands {
		fields++
	}
	if _, there := state["g"]; there != stands || len(state) != fields {
		w.Fatalf("%d fields with g among them: %v; want %d, %v: %v", len(state), there, fields, stands, state)
	}
}

func (w *world) forget() {
	w.client().Del(w.Context(), w.key, "ttl "+w.key)
}

func (l limit) of(version int64) limit {
	l.version = version
	return l
}

// contests are pairs of limits of which the first one wins.
var contests = []struct {
	why           string
	winner, loser limit
}{
	{"a higher version and a lower limit", per(10, time.Second, 10).of(2), per(100, time.Second, 100).of(1)},
	{"a higher version and a higher limit", per(100, time.Second, 100).of(2), per(10, time.Second, 10).of(1)},
	{"a higher version by one of 2^53", per(100, time.Second, 100).of(9_007_199_254_740_991), per(10, time.Second, 10).of(9_007_199_254_740_990)},
	{"a higher version of the same limit", per(7, 3*time.Second, 70).of(1), per(7, 3*time.Second, 70)},
	{"the lower rate", per(10, time.Second, 100), per(11, time.Second, 100)},
	{"the lower rate, whatever the burst", per(10, time.Second, 1000).of(3), per(11, time.Second, 5).of(3)},
	{"the lower rate by one of 366 days", per(9, 366*24*time.Hour, 100), per(10, 366*24*time.Hour, 50)},
	{"the lower rate in other terms", per(3333, 10*time.Second, 100), per(1000, 3*time.Second, 100)},
	{"the same rate and the smaller burst", per(10, time.Second, 99).of(5), per(10, time.Second, 100).of(5)},
}

// governing: who wins while instances disagree about the limit.
var governing = []scenario{
	{"the winner applies, whoever comes first", func(w *world) {
		for _, c := range contests {
			w.forget()
			w.wins(c.winner, c.winner)
			w.wins(c.loser, c.winner)
			w.wins(c.winner, c.winner)
			w.forget()
			w.wins(c.loser, c.loser)
			w.wins(c.winner, c.winner)
			w.wins(c.loser, c.winner)
		}
	}},
	{"a request is decided under the winner's limit", func(w *world) {
		small, large := per(10, time.Second, 20).of(1), per(100, time.Second, 200)
		w.acquire(ask(small, 5, 1))
		a := w.acquire(ask(large, 1, 100))
		w.equal(a.status, other)
		w.equal(a.granted[0], 15)
		w.pass(100 * time.Millisecond)
		a = w.acquire(ask(large, 1, 100))
		w.equal(a.granted[0], 1)
		w.equal(a.tokens, 0)
	}},
	{"the same limit of another version is the same bucket", func(w *world) {
		l := per(7, 3*time.Second, 70)
		w.granted(w.acquire(ask(l.of(4), 30, 1)), 40*unit, 1)
		w.pass(100 * time.Millisecond)
		a := w.acquire(ask(l.of(3), 40, 1))
		w.equal(a.granted[0], 1)
		w.equal(a.tokens, 233_333)
		w.pass(100 * time.Millisecond)
		w.equal(w.acquire(ask(l.of(4), 1, 1)).tokens, 466_666) // two thirds of a micro-token are not lost
		w.pass(100 * time.Millisecond)
		w.equal(w.acquire(ask(l.of(4), 1, 1)).tokens, 700_000)
	}},
	{"a warm key goes on as well", func(w *world) {
		winner, loser := per(100, time.Second, 100).of(1), per(1000, time.Second, 1000)
		w.acquire(lump(winner, "a", 1, 30))
		a := w.acquire(lump(loser, "b", 1, 800)) // the larger of two wishes is cut by half of what is left
		w.equal(a.status, other)
		w.equal(a.lump, 35*unit)
		w.equal(a.tokens, 35*unit)
		w.equal(a.out, 65*unit)
		m := lump(loser, "b", 2, 0)
		m.kept = 35 * unit
		w.pass(time.Second) // b alone; a's lease has ended
		a = w.acquire(m)
		w.equal(a.status, ok)
		w.equal(a.lump, 0) // b's has as well
		w.cold()
	}},
}
