package lua_test

import (
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/resilient-go/limiter/lua"
)

// Whatever is said to it, true or not, in order or not, with a clock that steps:
// the sums are those of the records, and together they stay within the limit.
func TestRatesStayWithinTheLimit(t *testing.T) {
	t.Run("miniredis", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newMini(t)
			rapid.Check(inBubble{t}, func(rt *rapid.T) { parted(rt, s) })
		})
	})
	t.Run("redis-server", func(t *testing.T) {
		s := newReal(t)
		rapid.Check(t, func(rt *rapid.T) { parted(rt, s) })
	})
}

// partedLimit is mostly one that is worth a rate.
var partedLimit = rapid.Custom(func(t *rapid.T) limit {
	if rapid.IntRange(0, 4).Draw(t, "any") == 0 {
		return anyLimit.Draw(t, "limit")
	}
	period := rapid.SampledFrom([]time.Duration{time.Second, 3 * time.Second, 1900 * time.Millisecond, 7 * time.Millisecond}).Draw(t, "period")
	return per(rapid.Int64Range(10, 100_000).Draw(t, "count"), period, rapid.Int64Range(1, 10_000).Draw(t, "burst"))
})

func parted(t *rapid.T, s server) {
	w := newWorld(t, s, "parted")
	w.client().Del(w.Context(), w.key, "ttl "+w.key)
	l := partedLimit.Draw(t, "limit")
	same := true // all leases were granted under this limit
	holders := []*claimant{{id: "a"}, {id: "b"}, {id: "c"}, {id: "d"}}
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		if rapid.IntRange(0, 2).Draw(t, "pace") == 0 {
			if us := anyPause(t, l); w.now+us < 8_000_000_000_000_000 {
				w.move(us)
			}
		} else {
			w.move(rapid.Int64Range(0, 400_000).Draw(t, "us of a horizon"))
		}
		switch rapid.IntRange(0, 24).Draw(t, "operation") {
		case 0:
			version := l.version + 1 // who disagrees about the limit is the matter of another test
			l = partedLimit.Draw(t, "new limit")
			l.version = version
			same = false
			continue
		case 1:
			reply, err := w.eval(lua.Reset, w.key, l.args())
			if err != nil {
				w.Fatalf("reset: %v", err)
			}
			w.checkRates(l, read(w, reply, -1))
			continue
		case 2:
			w.unchanged(func() { w.peek(l) })
			continue
		}
		h := rapid.SampledFrom(holders).Draw(t, "holder")
		m := metered{message: h.message(t, l)}
		m.demand = rapid.OneOf(rapid.Int64Range(0, 3*l.top()), rapid.Int64Range(0, 5*unit)).Draw(t, "demand")
		m.demand = min(m.demand, 1<<51)
		if rapid.IntRange(0, 9).Draw(t, "takes a rate") > 0 {
			m.rate, m.burst = l.top(), l.burst
			if rapid.IntRange(0, 3).Draw(t, "less") == 0 {
				m.rate = rapid.Int64Range(0, l.top()).Draw(t, "rate")
				m.burst = rapid.Int64Range(0, l.burst).Draw(t, "burst")
			}
		}
		a := w.meter(m)
		if a.status != ok {
			continue
		}
		if a.rates == 0 {
			same = true
		}
		if same && a.rates > l.top() {
			w.Fatalf("rates of %d together, want at most %d", a.rates, l.top())
		}
		if a.rate > 0 && a.rates > l.top() {
			w.Fatalf("a rate of %d was granted beyond the limit: %d of %d", a.rate, a.rates, l.top())
		}
		h.seq = m.seq
		h.hold = m.kept
		if rapid.IntRange(0, 7).Draw(t, "lost") > 0 {
			h.hold = a.lump + a.burst/2
		}
	}
}
