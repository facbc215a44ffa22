package lua_test

import (
	"math/big"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/resilient-go/limiter/lua"
)

// The leaky bucket decides as a queue in exact arithmetic that drains at the rate:
// who does not wait needs room, who waits needs room and a turn within the ttl.
func TestLeakyBucketAgreesWithExactArithmetic(t *testing.T) {
	t.Run("miniredis", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newMini(t)
			rapid.Check(inBubble{t}, func(rt *rapid.T) { drains(rt, s) })
		})
	})
	t.Run("redis-server", func(t *testing.T) {
		s := newReal(t)
		rapid.Check(t, func(rt *rapid.T) { drains(rt, s) })
	})
}

func drains(rt *rapid.T, s server) {
	l := anyLimit.Draw(rt, "limit")
	w := newWorld(rt, s, "leaky")
	w.client().Del(w.Context(), w.key, "ttl "+w.key)
	room, at := rat(l.burst), w.now
	for seq := int64(1); seq <= 20; seq++ {
		w.move(anyPause(rt, l))
		if w.ttl(w.key) == -2 {
			room, at = rat(l.burst), w.now
		}
		drained := rat(max(0, w.now-at))
		drained.Mul(drained, l.rate())
		if room = new(big.Rat).Add(room, drained); room.Cmp(rat(l.burst)) > 0 {
			room = rat(l.burst)
		}
		at = w.now
		ttl := time.Duration(rapid.OneOf(rapid.Int64Range(0, 10), rapid.Int64Range(0, 5_000_000)).Draw(rt, "ttl")) * time.Microsecond
		m := message{id: "holder", seq: seq, limit: l, ttl: ttl}
		if rapid.IntRange(0, 5).Draw(rt, "charges") == 0 {
			m.charge = rapid.Int64Range(-2*l.burst, 2*l.burst).Draw(rt, "charge")
		}
		// The whole micro-tokens are charged; the fraction towards the next one stays.
		whole := floor(room)
		charged := max(min(whole-m.charge, l.burst), min(whole, -l.burst))
		if m.charge > 0 {
			charged = max(whole-m.charge, -l.burst)
		}
		room = new(big.Rat).Add(room, rat(charged-whole))
		var want []int64
		blocked := false
		for range rapid.IntRange(1, 3).Draw(rt, "runs") {
			n := need{
				n:     rapid.OneOf(rapid.Just(int64(1)), rapid.Int64Range(1, l.burst/unit)).Draw(rt, "tokens"),
				count: rapid.Int64Range(1, 5).Draw(rt, "count"), queue: rapid.Bool().Draw(rt, "queue"),
			}
			m.needs = append(m.needs, n)
			can := int64(0)
			for can < n.count && !blocked {
				has := floor(room)
				turn := ceil(new(big.Rat).Quo(rat(l.burst-has), l.rate()))
				if has < n.n*unit || n.queue && turn > ttl.Microseconds() {
					break
				}
				room = new(big.Rat).Sub(room, rat(n.n*unit))
				can++
			}
			blocked = blocked || can < n.count && n.queue
			want = append(want, can)
		}
		a := w.ask(lua.LeakyBucket, m)
		for i := range want {
			if a.granted[i] != want[i] {
				rt.Fatalf("%+v was granted %v, want %v", m, a.granted, want)
			}
		}
		if a.tokens != floor(room) || a.lump != 0 || a.ttl != 0 || a.out != 0 {
			rt.Fatalf("%+v: %+v, want room for %d and no lease", m, a, floor(room))
		}
		if p := w.look(lua.LeakyBucket, lua.Peek, l); p.tokens != a.tokens {
			rt.Fatalf("a look says %d, want %d", p.tokens, a.tokens)
		}
	}
}
