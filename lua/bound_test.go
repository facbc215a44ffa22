package lua_test

import (
	"math/big"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// No window of length w admits more than burst + rate·w, whoever holds what and
// whatever gets lost: requests decided at the root, and lumps spent at any time
// until they end.
func TestNoWindowAdmitsMoreThanBurstAndRate(t *testing.T) {
	t.Run("miniredis", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newMini(t)
			rapid.Check(inBubble{t}, func(rt *rapid.T) { bounded(rt, s) })
		})
	})
	t.Run("redis-server", func(t *testing.T) {
		s := newReal(t)
		rapid.Check(t, func(rt *rapid.T) { bounded(rt, s) })
	})
}

// A spender is a holder that keeps to the rules.
type spender struct {
	id          string
	seq         int64
	hold, spent int64 // spent since its last message
	end         int64
}

type admission struct{ at, amount int64 }

func bounded(t *rapid.T, s server) {
	w := newWorld(t, s, "bound")
	w.client().Del(w.Context(), w.key, "ttl "+w.key)
	l := per(rapid.Int64Range(1, 2000).Draw(t, "count"), rapid.SampledFrom([]time.Duration{
		time.Second, 3 * time.Second, time.Minute, 1900 * time.Millisecond,
	}).Draw(t, "period"), rapid.Int64Range(1, 200).Draw(t, "burst"))
	holders := []*spender{{id: "a"}, {id: "b"}, {id: "c"}, {id: "d"}, {id: "e"}}
	var admitted []admission
	admit := func(amount int64) {
		if amount > 0 {
			admitted = append(admitted, admission{w.now, amount})
		}
	}
	token := max(1, ceil(new(big.Rat).Quo(rat(unit), l.rate())))
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		switch rapid.IntRange(0, 3).Draw(t, "pace") {
		case 0:
		case 1:
			w.move(rapid.Int64Range(0, 2*token).Draw(t, "us for tokens"))
		default:
			w.move(rapid.Int64Range(0, 600_000).Draw(t, "us"))
		}
		h := rapid.SampledFrom(holders).Draw(t, "holder")
		if w.now >= h.end {
			h.hold = 0
		}
		if h.hold > 0 && rapid.Bool().Draw(t, "spends") {
			n := rapid.Int64Range(1, h.hold/unit).Draw(t, "n") * unit
			h.hold, h.spent = h.hold-n, h.spent+n
			admit(n)
			continue
		}
		m := h.report(t, l)
		if rapid.IntRange(0, 9).Draw(t, "message lost") == 0 {
			continue
		}
		a := w.acquire(m)
		if a.status != ok {
			w.Fatalf("status %d", a.status)
		}
		if rapid.IntRange(0, 9).Draw(t, "answer lost") == 0 {
			continue
		}
		for i, n := range m.needs {
			admit(a.granted[i] * n.n * unit)
		}
		if a.lump > 0 {
			h.hold, h.end = a.lump, w.now+a.ttl
		}
	}
	for i := range admitted {
		sum := int64(0)
		for _, b := range admitted[i:] {
			sum += b.amount
			most := new(big.Rat).Mul(rat(b.at-admitted[i].at), l.rate())
			most.Add(most, rat(l.burst))
			if rat(sum).Cmp(most) > 0 {
				w.Fatalf("%d micro-tokens admitted in %d us, want at most %v", sum, b.at-admitted[i].at, most.FloatString(3))
			}
		}
	}
}

// report is the next message of a holder, which has removed what it returns.
func (h *spender) report(t *rapid.T, l limit) message {
	h.seq++
	m := message{id: h.id, seq: h.seq, limit: l, spent: h.spent}
	m.ttl = time.Duration(rapid.Int64Range(1000, 1_500_000).Draw(t, "ttl")) * time.Microsecond
	h.spent = 0
	if h.hold > 0 && rapid.Bool().Draw(t, "returns") {
		m.returned = rapid.Int64Range(1, h.hold/unit).Draw(t, "returned") * unit
		h.hold -= m.returned
	}
	m.kept = h.hold
	if rapid.Bool().Draw(t, "wants") {
		m.want = rapid.Int64Range(1, 2*l.burst/unit).Draw(t, "want") * unit
	}
	for range rapid.IntRange(0, 2).Draw(t, "needs") {
		m.needs = append(m.needs, need{
			n:     rapid.Int64Range(1, l.burst/unit).Draw(t, "n"),
			count: rapid.Int64Range(1, 5).Draw(t, "count"), queue: rapid.Bool().Draw(t, "queues"),
		})
	}
	return m
}
