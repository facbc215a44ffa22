package lua_test

import (
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/resilient-go/limiter/lua"
)

// What is given back is taken from the window, or the counter, that it was counted in,
// as long as that lasts, and from no other: whatever the message takes on its way, up
// to a third of a counter.
func TestWhatIsGivenBackCountsWhereItWasCounted(t *testing.T) {
	for name, algo := range map[string]*lua.Algorithm{"fixed": lua.FixedWindow, "rolling": lua.RollingWindow} {
		t.Run(name+" on miniredis", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newMini(t)
				rapid.Check(inBubble{t}, func(rt *rapid.T) { refunds(rt, s, algo) })
			})
		})
		t.Run(name+" on redis-server", func(t *testing.T) {
			s := newReal(t)
			rapid.Check(t, func(rt *rapid.T) { refunds(rt, s, algo) })
		})
	}
}

// A chunk is what was counted at once, and when it leaves.
type chunk struct{ n, leaves int64 }

func refunds(rt *rapid.T, s server, algo *lua.Algorithm) {
	w := newWorld(rt, s, "refund")
	w.client().Del(w.Context(), w.key, "ttl "+w.key)
	const period, width = int64(1_000_000), int64(100_000)
	l := perWindow(100, time.Second)
	var chunks []chunk
	held := func(part func(c chunk) int64) (sum int64) {
		for _, c := range chunks {
			sum += part(c)
		}
		return sum
	}
	// left is what a fixed window leaves, and the least and most of a rolling one, of
	// which the counter that leaves counts in part.
	check := func(tokens int64) {
		rt.Helper()
		most := 100 - held(func(c chunk) int64 {
			if left := c.leaves - w.now; algo == lua.FixedWindow && left > 0 || left > width {
				return c.n
			}
			return 0
		})
		least := 100 - held(func(c chunk) int64 {
			if c.leaves > w.now {
				return c.n
			}
			return 0
		})
		if tokens < least*unit || tokens > most*unit {
			rt.Fatalf("%d tokens, want from %d to %d: %v at %d", tokens/unit, least, most, chunks, w.now)
		}
	}
	for seq := int64(1); seq <= 40; seq++ {
		w.move(rapid.Int64Range(0, period/4).Draw(rt, "us"))
		m := ask(l, rapid.Int64Range(1, 20).Draw(rt, "n"), 1)
		m.seq = seq
		i := rapid.IntRange(-1, len(chunks)-1).Draw(rt, "chunk")
		if i < 0 || chunks[i].leaves-w.now <= width/3 { // one that leaves is not given back
			if a := w.ask(algo, m); a.granted[0] > 0 {
				chunks = append(chunks, chunk{m.needs[0].n, w.now + a.reset})
			}
			continue
		}
		back := rapid.Int64Range(1, chunks[i].n).Draw(rt, "back")
		m.charge, m.until = -back*unit, chunks[i].leaves-w.now+rapid.Int64Range(-width/3, width/3).Draw(rt, "late")
		if algo == lua.FixedWindow {
			m.until = max(m.until, chunks[i].leaves-w.now)
		}
		m.needs[0].n = 101 // asks for nothing that fits
		chunks[i].n -= back
		a := w.ask(algo, m)
		check(a.tokens)
		if chunks[i].n == 0 {
			chunks = append(chunks[:i], chunks[i+1:]...)
		}
	}
	w.move(2 * period)
	m := ask(l, 1, 1)
	m.seq = 100
	if a := w.ask(algo, m); a.tokens != 99*unit {
		rt.Fatalf("%d tokens in the end, want 99", a.tokens/unit)
	}
}

// What was counted in an earlier window gives the present one nothing.
func TestAnEarlierWindowGivesNothingBack(t *testing.T) {
	for _, algo := range []*lua.Algorithm{lua.FixedWindow, lua.RollingWindow} {
		everywhere(t, algo.Acquire.Name(), func(w *world) {
			l := perWindow(10, time.Second)
			w.ask(algo, ask(l, 8, 1))
			w.pass(1200 * time.Millisecond)
			w.ask(algo, ask(l, 10, 1))
			m := ask(l, 1, 1)
			m.seq, m.charge, m.until = 3, -8*unit, 1000
			if a := w.ask(algo, m); a.granted[0] != 0 || a.tokens != 0 {
				w.Fatalf("%+v", a)
			}
		})
	}
}
