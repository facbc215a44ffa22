package lua_test

import (
	"math/big"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// The scripts decide as the reference does, whatever comes: any limit, any changes
// of it, instances that disagree about it, any times and steps of the clock, several holders that state the
// truth or not, messages out of order and answers that are lost.
func TestScriptsAgreeWithExactArithmetic(t *testing.T) {
	t.Run("miniredis", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newMini(t)
			rapid.Check(inBubble{t}, func(rt *rapid.T) { agree(rt, s) })
		})
	})
	t.Run("redis-server", func(t *testing.T) {
		s := newReal(t)
		rapid.Check(t, func(rt *rapid.T) { agree(rt, s) })
	})
}

// inBubble hides the type of a bubble's test from rapid, which would ask it for
// its deadline.
type inBubble struct{ *testing.T }

var periods = []time.Duration{
	time.Second, 3 * time.Second, time.Minute, time.Hour, 24 * time.Hour, 366 * 24 * time.Hour,
	1900 * time.Millisecond, 999_999_937 * time.Nanosecond, 7 * time.Microsecond,
}

// anyLimit draws a limit within the numbers that the scripts allow, from 1 per
// 366 days to 10^9 per second.
var anyLimit = rapid.Custom(func(t *rapid.T) limit {
	count := rapid.OneOf(rapid.Int64Range(1, 20), rapid.Int64Range(1, 1_000_000_000))
	period := rapid.SampledFrom(periods)
	burst := rapid.OneOf(rapid.Int64Range(1, 20), rapid.Int64Range(1, 1_000_000_000))
	for {
		l := per(count.Draw(t, "count"), period.Draw(t, "period"), 1)
		most := new(big.Int).Sub(big.NewInt(1<<53-1), big.NewInt(l.num))
		most.Div(most, new(big.Int).Mul(big.NewInt(2*unit), big.NewInt(l.den)))
		if l.num < 0 || most.Sign() <= 0 {
			continue
		}
		l.burst = min(burst.Draw(t, "burst"), most.Int64()) * unit
		if l.exact() {
			return l
		}
	}
})

// anyPause draws how much time passes, in microseconds.
func anyPause(t *rapid.T, l limit) int64 {
	token := max(1, ceil(new(big.Rat).Quo(rat(unit), l.rate())))
	full := max(1, ceil(new(big.Rat).Quo(rat(l.burst), l.rate())))
	switch rapid.IntRange(0, 9).Draw(t, "pace") {
	case 0, 1:
		return 0
	case 2:
		return rapid.Int64Range(1, 10).Draw(t, "us")
	case 3, 4:
		return rapid.Int64Range(1, 3*token).Draw(t, "us for tokens")
	case 5:
		return rapid.Int64Range(1, 2*full).Draw(t, "us until full")
	case 6, 7:
		return rapid.Int64Range(1, 2_000_000).Draw(t, "us of a lease")
	case 8:
		return rapid.Int64Range(full, full+40_000_000).Draw(t, "us until forgotten")
	default:
		return -rapid.OneOf(rapid.Int64Range(1, 100), rapid.Int64Range(1, 3_600_000_000)).Draw(t, "us back")
	}
}

// A claimant is a holder as it sees itself.
type claimant struct {
	id   string
	seq  int64
	hold int64
}

func agree(t *rapid.T, s server) {
	w := newWorld(t, s, "property")
	w.client().Del(w.Context(), w.key, "ttl "+w.key)
	asked := [2]limit{anyLimit.Draw(t, "limit"), anyLimit.Draw(t, "limit of others")}
	l := asked[0]
	r := newReference(l, w.now)
	holders := []*claimant{{id: "a"}, {id: "b"}, {id: "c"}, {id: "d"}}
	back := false // since the last write
	for range rapid.IntRange(1, 40).Draw(t, "steps") {
		if us := anyPause(t, l); w.now+us < 8_000_000_000_000_000 {
			w.move(us)
			back = back || us < 0
		}
		l = asked[max(0, rapid.IntRange(-3, 1).Draw(t, "whose limit"))]
		if w.ttl(w.key) == -2 {
			if !back && !r.full(w.now) {
				w.Fatalf("the key is gone although it still limits: %+v", r)
			}
			r = newReference(l, w.now)
		}
		var got, want answer
		switch op := rapid.IntRange(0, 19).Draw(t, "operation"); op {
		case 0:
			i := rapid.IntRange(0, 1).Draw(t, "of others")
			asked[i] = anyLimit.Draw(t, "new limit")
			asked[i].version = rapid.Int64Range(0, 2).Draw(t, "version")
			continue
		case 1:
			got = w.reset(l)
			r, want = r.reset(l, w.now)
			back = false
		case 2, 3:
			w.unchanged(func() { got = w.peek(l) })
			want = r.peek(l, w.now)
		default:
			h := rapid.SampledFrom(holders).Draw(t, "holder")
			m := h.message(t, l)
			got = w.acquire(m)
			r, want = r.acquire(m, w.now)
			if got.done() {
				back = false
				h.seq, h.hold = m.seq, got.lump
				if rapid.IntRange(0, 7).Draw(t, "lost") == 0 {
					h.hold = m.kept
				}
			}
		}
		if !same(got, want) {
			w.Fatalf("the script says %+v, the reference %+v", got, want)
		}
	}
}

// message draws what the holder says.
func (h *claimant) message(t *rapid.T, l limit) message {
	m := message{id: h.id, seq: h.seq + 1, limit: l}
	m.ttl = time.Duration(rapid.Int64Range(500_000, 31_000_000).Draw(t, "ttl")) * time.Microsecond
	m.spent = rapid.Int64Range(0, h.hold).Draw(t, "spent")
	m.returned = rapid.Int64Range(0, h.hold-m.spent).Draw(t, "returned")
	m.kept = h.hold - m.spent - m.returned
	lie := rapid.Int64Range(0, l.burst/2)
	switch rapid.IntRange(0, 19).Draw(t, "truth") {
	case 0:
		m.spent += lie.Draw(t, "more spent")
	case 1:
		m.kept += lie.Draw(t, "more kept")
	case 2:
		m.returned += lie.Draw(t, "more returned")
	case 3:
		m.seq = rapid.Int64Range(0, m.seq).Draw(t, "stale")
	}
	burst := l.burst / unit
	if rapid.Bool().Draw(t, "has a demand") { // args asks for no part of the rate
		m.demand = rapid.Int64Range(0, 5*unit).Draw(t, "demand")
	}
	if rapid.Bool().Draw(t, "wants") {
		m.want = rapid.Int64Range(0, 2*burst).Draw(t, "want") * unit
		m.least = rapid.Int64Range(0, min(m.want/unit, 4)).Draw(t, "least") * unit
	}
	size := rapid.OneOf(rapid.Int64Range(1, 3), rapid.Int64Range(1, burst+1))
	for range rapid.IntRange(0, 4).Draw(t, "needs") {
		m.needs = append(m.needs, need{
			n: size.Draw(t, "n"), count: rapid.Int64Range(0, 5).Draw(t, "count"),
			queue: rapid.Bool().Draw(t, "queues"), low: rapid.IntRange(0, 3).Draw(t, "low") == 0,
			book: rapid.IntRange(0, 3).Draw(t, "books") == 0, hold: rapid.IntRange(0, 3).Draw(t, "holds") == 0,
		})
	}
	if rapid.Bool().Draw(t, "has a reserve") {
		m.reserve = rapid.Int64Range(0, 999).Draw(t, "reserve")
	}
	return m
}
