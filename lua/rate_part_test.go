package lua_test

import (
	"math/big"
	"time"
)

// thousand is the limit of most examples: a token per millisecond.
var thousand = per(1000, time.Second, 100)

// renewal is a message of a holder that has spent all and would have a rate, with
// one more request than it can pay for. Demand is tokens per second.
func renewal(l limit, id string, seq, demand, spent int64) metered {
	return metered{message: message{
		id: id, seq: seq, limit: l, ttl: time.Second, spent: spent * unit, demand: demand * unit,
		want: 100 * unit, needs: []need{{n: 1, count: 1}},
	}, rate: l.top(), burst: l.burst}
}

// empty takes all that the root has.
func (w *world) empty(l limit) {
	w.Helper()
	m := metered{message: ask(l, 1, l.burst/unit)}
	w.equal(w.meter(m).tokens, 0)
}

// rated fails unless the holder has that rate, in micro-tokens per second, and
// that burst, in micro-tokens, and all have that rate together.
func (w *world) rated(a answer, rate, burst, rates int64) {
	w.Helper()
	if a.status != ok || a.rate != rate || a.burst != burst || a.rates != rates {
		w.Fatalf("%+v, want a rate of %d up to %d, and %d in all", a, rate, burst, rates)
	}
}

// noLump is the want of a holder that would have a rate and nothing of what the
// root has left: less than a token.
const noLump = 1

const horizon = 200 * time.Millisecond

// parting: who gets which part. Of a burst of 100, 99 are for holders that are not
// alone.
var parting = []scenario{
	{"one holder alone gets all of the rate", func(w *world) {
		w.empty(thousand)
		a := w.meter(renewal(thousand, "a", 1, 2000, 0))
		w.rated(a, 1000*unit, 100*unit, 1000*unit)
		w.held(answer{tokens: a.tokens, out: a.out}, 0, 0, 100)
		w.equal(a.ttl, 1_000_000)
		w.pass(horizon)
		w.equal(w.peek(thousand).tokens, 0) // nothing is left for the root
	}},
	{"two with equal demand have a half each after two renewals", func(w *world) {
		w.empty(thousand)
		w.meter(renewal(thousand, "a", 1, 1000, 0))
		w.meter(renewal(thousand, "b", 1, 1000, 0))
		w.pass(horizon)
		w.rated(w.meter(renewal(thousand, "a", 2, 1000, 200)), 500*unit, 99*unit/2, 500*unit)
		w.rated(w.meter(renewal(thousand, "b", 2, 1000, 0)), 500*unit, 99*unit/2, 1000*unit)
		w.pass(horizon)
		w.rated(w.meter(renewal(thousand, "a", 3, 1000, 100)), 500*unit, 99*unit/2, 1000*unit)
		a := w.meter(renewal(thousand, "b", 3, 1000, 100))
		w.rated(a, 500*unit, 99*unit/2, 1000*unit)
		w.equal(a.tokens, 0)
	}},
	{"shares go by demand", func(w *world) {
		w.empty(thousand)
		demand := map[string]int64{"a": 1000, "b": 2000, "c": 3000}
		var got [3]answer
		for seq := int64(1); seq <= 3; seq++ {
			for i, id := range []string{"a", "b", "c"} {
				spent := got[i].rate / 5 / unit
				got[i] = w.meter(renewal(thousand, id, seq, demand[id], spent))
			}
			w.pass(horizon)
		}
		w.rated(got[0], 166_666_666, 16_499_999, got[0].rates)
		w.rated(got[1], 333_333_333, 32_999_999, got[1].rates)
		w.rated(got[2], 500*unit, 99*unit/2, 999_999_999)
	}},
	{"no more than the holder may have", func(w *world) {
		w.empty(thousand)
		m := renewal(thousand, "a", 1, 1000, 0)
		m.rate, m.burst = 250*unit, 7*unit
		w.rated(w.meter(m), 250*unit, 7*unit, 250*unit)
		w.pass(horizon)
		w.equal(w.peek(thousand).tokens, 93*unit) // 150, but for the burst that is out
		w.pass(-horizon / 2)
		w.equal(w.peek(thousand).tokens, 75*unit)
	}},
	{"what is held beyond the burst stays", func(w *world) {
		m := renewal(thousand, "a", 1, 1000, 0)
		m.needs, m.want = nil, 50*unit
		w.equal(w.meter(m).lump, 50*unit)
		w.meter(metered{message: ask(thousand, 50, 1)})
		m = renewal(thousand, "a", 2, 1000, 0)
		m.kept, m.burst = 50*unit, 20*unit
		a := w.meter(m)
		w.rated(a, 1000*unit, 20*unit, 1000*unit)
		w.equal(a.lump, 50*unit)
		w.equal(a.out, 50*unit)
	}},
	{"the root has the rest of the rate to the micro-token", func(w *world) {
		l := per(7003, 3*time.Second, 1_000_000)
		w.empty(l)
		m := renewal(l, "a", 1, 1000, 0)
		m.rate, m.burst, m.want = 777_777_777, 10*unit, noLump
		w.rated(w.meter(m), 777_777_777, 10*unit, 777_777_777)
		begun, spent, messages := w.now, int64(0), int64(0)
		for w.now-begun < 60_000_000 {
			w.move(193_771)
			messages++
			earned := 777_777_777 * (w.now - begun) / unit
			m.seq, m.spent, m.needs = m.seq+1, earned-spent, nil
			spent = earned
			a := w.meter(m)
			w.equal(a.rate, 777_777_777)
			exact := new(big.Rat).Sub(l.rate(), big.NewRat(777_777_777, unit))
			most := floor(exact.Mul(exact, rat(w.now-begun)))
			if a.tokens > most || a.tokens < most-messages {
				w.Fatalf("%d micro-tokens after %d messages, want %d and one less for each", a.tokens, messages, most)
			}
		}
	}},
}
