package lua_test

import (
	"fmt"
	"math/big"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/resilient-go/limiter/lua"
)

// withTiers are arguments with further tiers behind them.
func withTiers(args []any, further []limit) []any {
	for _, l := range further {
		args = append(args, l.num, l.den, l.burst)
	}
	return append(args, len(further))
}

// A tieredAnswer tells besides what each tier holds.
type tieredAnswer struct {
	timedAnswer
	tiers []int64
}

// tiered sends a message to tiers.
func (w *world) tiered(m message, further []limit) tieredAnswer {
	w.Helper()
	reply, err := w.eval(lua.Tiers.Acquire, w.key, withTiers(m.args(), further))
	if err != nil {
		w.Fatalf("acquire: %v", err)
	}
	array := reply.([]any)
	needs := len(m.needs)
	if len(array) != 14+2*needs+1+1+len(further) {
		w.Fatalf("%d values: %v", len(array), array)
	}
	var v []int64
	for _, e := range array[14+needs:] {
		var n int64
		if _, err := fmt.Sscan(e.(string), &n); err != nil {
			w.Fatalf("%v", array)
		}
		v = append(v, n)
	}
	return tieredAnswer{timedAnswer{read(w, array[:14+needs], needs), v[:needs], v[needs]}, v[needs+1:]}
}

// Tiers are several buckets in exact arithmetic of which each request takes from all or
// from none, and what is on lease is on lease from each.
func TestTiersAgreeWithExactArithmetic(t *testing.T) {
	t.Run("miniredis", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newMini(t)
			rapid.Check(inBubble{t}, func(rt *rapid.T) { together(rt, s) })
		})
	})
	t.Run("redis-server", func(t *testing.T) {
		s := newReal(t)
		rapid.Check(t, func(rt *rapid.T) { together(rt, s) })
	})
}

func together(rt *rapid.T, s server) {
	all := rapid.SliceOfN(anyLimit, 2, 4).Draw(rt, "tiers")
	smallest := all[0].burst / unit
	tokens := make([]*big.Rat, len(all))
	for i, l := range all {
		smallest = min(smallest, l.burst/unit)
		tokens[i] = rat(l.burst)
	}
	w := newWorld(rt, s, "tiers")
	w.client().Del(w.Context(), w.key, "ttl "+w.key)
	var at, out, end, kept int64 = w.now, 0, 0, 0
	accrue := func(to int64) {
		for i, l := range all {
			gain := rat(max(0, to-at))
			gain.Mul(gain, l.rate())
			sum := new(big.Rat).Add(tokens[i], gain)
			if room := rat(max(0, l.burst-out)); sum.Cmp(room) > 0 {
				sum = room
			}
			tokens[i] = sum
		}
		at = to
	}
	least := func() int64 {
		n := floor(tokens[0])
		for _, x := range tokens {
			n = min(n, floor(x))
		}
		return n
	}
	add := func(n int64) {
		for i := range tokens {
			tokens[i] = new(big.Rat).Add(tokens[i], rat(n))
		}
	}
	for seq := int64(1); seq <= 20; seq++ {
		w.move(min(max(0, anyPause(rt, all[rapid.IntRange(0, len(all)-1).Draw(rt, "tier")])), 1e14)) // the clock stays below 2^53
		if w.ttl(w.key) == -2 {
			for i, l := range all {
				if free := new(big.Rat).Add(tokens[i], new(big.Rat).Mul(rat(w.now-max(at, end)), l.rate())); free.Cmp(rat(l.burst-out)) < 0 {
					rt.Fatalf("the key is gone and tier %d holds %v of %d", i, free, l.burst)
				}
				tokens[i] = rat(l.burst)
			}
			at, out, end, kept = w.now, 0, 0, 0
		}
		if end > 0 && end <= w.now {
			accrue(max(at, end))
			out, end, kept = 0, 0, 0
		}
		accrue(w.now)
		m := message{id: "holder", seq: seq, limit: all[0], ttl: time.Second}
		if kept > 0 {
			m.kept = rapid.Int64Range(0, kept/unit).Draw(rt, "kept") * unit
			m.returned = rapid.Int64Range(0, (kept-m.kept)/unit).Draw(rt, "returned") * unit
			m.spent = kept - m.kept - m.returned
		}
		out = m.kept
		add(m.returned)
		if rapid.IntRange(0, 2).Draw(rt, "wants") == 0 {
			m.want = rapid.Int64Range(1, smallest).Draw(rt, "want") * unit
		}
		var granted []int64
		blocked := false
		for range rapid.IntRange(0, 3).Draw(rt, "runs") {
			n := need{
				n:     rapid.OneOf(rapid.Just(int64(1)), rapid.Int64Range(1, smallest)).Draw(rt, "tokens"),
				count: rapid.Int64Range(1, 5).Draw(rt, "count"), queue: rapid.Bool().Draw(rt, "queue"),
			}
			m.needs = append(m.needs, n)
			can := int64(0)
			for can < n.count && !blocked && least() >= n.n*unit {
				add(-n.n * unit)
				can++
			}
			blocked = blocked || can < n.count && n.queue
			granted = append(granted, can)
		}
		before := least()
		a := w.tiered(m, all[1:])
		if lent := a.lump - m.kept; lent > 0 {
			if lent > m.want || lent > before/2 {
				rt.Fatalf("%d were lent of %d: %+v", lent, before, m)
			}
			add(-lent)
			out += lent
		}
		kept = a.lump
		if kept > 0 {
			end = max(end, w.now+a.ttl)
		}
		if kept == 0 {
			out, end = 0, 0
		}
		for i, l := range all {
			if a.tiers[i] != floor(tokens[i]) || a.tiers[i]+out > l.burst {
				rt.Fatalf("tier %d holds %d with %d out, want %d of %d", i, a.tiers[i], out, floor(tokens[i]), l.burst)
			}
		}
		for i := range granted {
			if a.granted[i] != granted[i] {
				rt.Fatalf("%+v was granted %v, want %v", m, a.granted, granted)
			}
			longest := int64(0)
			for j, l := range all {
				if missing := m.needs[i].n*unit - floor(tokens[j]); missing > 0 {
					longest = max(longest, ceil(new(big.Rat).Quo(rat(missing), l.rate())))
				}
			}
			if granted[i] == m.needs[i].count {
				longest = 0
			}
			if longest = max(longest, min(1, m.needs[i].count-granted[i])); out == 0 && a.fits[i] != longest {
				rt.Fatalf("%d fit in %d us, want %d", m.needs[i].n, a.fits[i], longest)
			}
		}
		if a.tokens != least() || a.out != out {
			rt.Fatalf("%d tokens, %d out, want %d, %d: %+v", a.tokens, a.out, least(), out, m)
		}
	}
}

// A look at tiers tells when one fits, and changes nothing; a reset fills each.
func TestLooksAtTiers(t *testing.T) {
	everywhere(t, "look", func(w *world) {
		l, further := per(10, time.Second, 10), []limit{per(60, time.Minute, 12)}
		m := ask(l, 1, 10)
		w.tiered(m, further)
		w.pass(time.Second)
		w.tiered(m, further) // three pass
		look := func(op *lua.Script) []any {
			w.Helper()
			reply, err := w.eval(op, w.key, withTiers(append(l.args(), op.Name()), further))
			if err != nil {
				w.Fatalf("%v", err)
			}
			return reply.([]any)[2:]
		}
		w.undisturbed(func() {
			if got, want := fmt.Sprint(look(lua.Tiers.Peek)), "[0 0 0 0 0 1000000 12000000]"; got != want {
				w.Fatalf("peek: %s, want %s", got, want)
			}
		})
		if got, want := fmt.Sprint(look(lua.Tiers.Reset)), "[10000000 0 0 0 0 0 0]"; got != want {
			w.Fatalf("reset: %s, want %s", got, want)
		}
		if a := w.tiered(ask(l, 12, 1), further); a.granted[0] != 0 || a.tiers[0] != 10*unit || a.tiers[1] != 12*unit {
			w.Fatalf("after the reset: %+v", a)
		}
	})
}

// What was spent without asking is charged to each tier, down to its own burst.
func TestTiersAreCharged(t *testing.T) {
	everywhere(t, "charge", func(w *world) {
		l, further := per(10, time.Second, 10), []limit{per(100, time.Minute, 100)}
		m := ask(l, 1, 1)
		m.charge = 50 * unit
		a := w.tiered(m, further)
		if a.tiers[0] != -10*unit || a.tiers[1] != 50*unit || a.granted[0] != 0 || a.fits[0] != 1_100_000 {
			w.Fatalf("%+v", a)
		}
		m.charge = -20 * unit
		if a = w.tiered(m, further); a.tiers[0] != 9*unit || a.tiers[1] != 69*unit || a.granted[0] != 1 {
			w.Fatalf("%+v", a)
		}
	})
}
