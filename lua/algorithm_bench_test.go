package lua_test

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/resilient-go/limiter/lua"
)

// BenchmarkCalls is how long a call of each algorithm takes at a redis-server, as that
// says itself, in the ordinary case and in the worst. docs/algorithms.md has the
// figures.
func BenchmarkCalls(b *testing.B) {
	steady := func(w *world, l limit, algo *lua.Algorithm) {
		w.move(1000)
		w.ask(algo, ask(l, 1, 1))
	}
	refused := func(w *world, l limit, algo *lua.Algorithm) { w.ask(algo, ask(l, l.burst/unit/2, 1)) }
	tiers := func(n int) func(w *world, l limit, _ *lua.Algorithm) {
		return func(w *world, l limit, _ *lua.Algorithm) {
			further := make([]limit, n)
			for i := range further {
				further[i] = l
			}
			w.move(1000)
			w.tiered(ask(l, 1, 1), further)
		}
	}
	for _, c := range []struct {
		name string
		algo *lua.Algorithm
		n    int64
		fill int64 // members, a millisecond apart
		then time.Duration
		call func(w *world, l limit, algo *lua.Algorithm)
	}{
		{"token bucket", lua.TokenBucket, 10_000, 0, 0, steady},
		{"two tiers", lua.Tiers, 10_000, 0, 0, tiers(1)},
		{"three tiers", lua.Tiers, 10_000, 0, 0, tiers(2)},
		{"leaky bucket", lua.LeakyBucket, 10_000, 0, 0, steady},
		{"fixed window", lua.FixedWindow, 10_000, 0, 0, steady},
		{"rolling window", lua.RollingWindow, 10_000, 0, 0, steady},
		{"rolling window refuses", lua.RollingWindow, 10_000, 10_000, 0, refused},
		{"sliding log", lua.SlidingLog, 10_000, 0, 0, steady},
		{"sliding log of 10000 refuses", lua.SlidingLog, 10_000, 10_000, 0, refused},
		{"sliding log of which 9999 leave", lua.SlidingLog, 10_000, 10_000, 19_998 * time.Millisecond, steady},
		{"sliding log of which all leave", lua.SlidingLog, 10_000, 10_000, time.Minute, steady},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := newWorld(b, newReal(b), "bench")
			l := perWindow(c.n, 10*time.Second)
			for range c.fill {
				w.move(999)
				w.ask(c.algo, ask(l, 1, 1))
			}
			memory := w.client().MemoryUsage(b.Context(), w.key, 0).Val()
			w.pass(c.then)
			w.client().ConfigResetStat(b.Context())
			for b.Loop() {
				c.call(w, l, c.algo)
			}
			if c.fill == 0 {
				memory = w.client().MemoryUsage(b.Context(), w.key, 0).Val()
			}
			info := w.client().Info(b.Context(), "commandstats").Val()
			m := regexp.MustCompile(`cmdstat_evalsha:.*usec_per_call=([0-9.]+)`).FindStringSubmatch(info)
			if m == nil {
				b.Fatal(info)
			}
			us, _ := strconv.ParseFloat(m[1], 64)
			b.ReportMetric(us, "server-us/call")
			b.ReportMetric(float64(memory), "B/key")
			b.ReportMetric(0, "ns/op")
		})
	}
}
