package lua_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/resilient-go/limiter/internal/redistest"
	"github.com/resilient-go/limiter/lua"
)

var inf = math.Inf(1)

// Calls of the same microsecond are members of their own, in their order.
func TestSlidingLogCountsCallsOfOneInstant(t *testing.T) {
	everywhere(t, "instant", func(w *world) {
		l := perWindow(1000, time.Second)
		for i := range int64(1000) {
			if a := w.ask(lua.SlidingLog, ask(l, 1, 1)); a.granted[0] != 1 || a.tokens != (999-i)*unit {
				w.Fatalf("call %d: %+v", i, a)
			}
		}
		if a := w.ask(lua.SlidingLog, ask(l, 1, 1)); a.granted[0] != 0 || a.fits[0] != 1_000_000 {
			w.Fatalf("%+v", a)
		}
	})
}

// Requests of many tokens, and many requests of one message, are one member.
func TestSlidingLogStoresOneMemberPerMessage(t *testing.T) {
	everywhere(t, "weight", func(w *world) {
		m := ask(perWindow(10_000, time.Second), 700, 3)
		m.needs = append(m.needs, need{n: 1, count: 50})
		w.ask(lua.SlidingLog, m)
		if n := w.client().ZCard(w.Context(), w.key).Val(); n != 2 { // and the limit
			w.Fatalf("%d members", n)
		}
		if a := w.look(lua.SlidingLog, lua.SlidingLog.Peek, m.limit); a.tokens != (10_000-2150)*unit {
			w.Fatalf("%+v", a)
		}
	})
}

// However much leaves the window at once, a call removes no more than 512 members, and
// counts right all the same.
func TestSlidingLogRemovesInSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newMini(t), "steps")
		l := perWindow(1400, time.Second)
		for range 1400 - 1 {
			w.ask(lua.SlidingLog, ask(l, 1, 1))
		}
		w.pass(500 * time.Millisecond)
		w.ask(lua.SlidingLog, ask(l, 1, 1))
		w.pass(600 * time.Millisecond)
		for i, want := range []int64{1400 - 512 + 1, 1400 - 1024 + 2, 1 + 3, 1 + 4} {
			a := w.ask(lua.SlidingLog, ask(l, 1, 1))
			members := w.client().ZCard(w.Context(), w.key).Val() - 1 // but for the limit
			if members != want || a.granted[0] != 1 || a.tokens != (1400-1-int64(i+1))*unit {
				t.Fatalf("call %d: %d members, %+v, want %d", i, members, a, want)
			}
		}
	})
}

// A counter is small whatever it counts, and a log takes memory for each message.
func TestMemoryOfTheAlgorithms(t *testing.T) {
	s := &realServer{TB: t, rdb: redistest.Server(t).Client()}
	for name, most := range map[string]int64{"leaky": 200, "fixed": 200, "rolling": 400, "log": 300} {
		algo := others[name]
		for what, l := range map[string]limit{
			"per second": perWindow(100, time.Second), "per day": perWindow(10_000, 24*time.Hour), "per 366 days": perWindow(7, 366*24*time.Hour),
		} {
			w := &world{tb: t, server: s, key: "rl:{api:user:1000001 " + what + "}" + algo.Suffix}
			if _, err := run(s.rdb, algo.Acquire.SHA(), algo.Acquire.Text(), []string{w.key}, ask(l, 1, 1).args()); err != nil {
				t.Fatal(err)
			}
			n := s.rdb.MemoryUsage(t.Context(), w.key).Val()
			t.Logf("%s %s: %d bytes", name, what, n)
			if n <= 0 || n >= most {
				t.Errorf("%s, %s: %d bytes, want less than %d: %v", name, what, n, most, w.stored())
			}
		}
	}
}

// Through a day with a request per second a counter does not grow, and a log holds
// what its period admits.
func TestMemoryStaysTheSameForADay(t *testing.T) {
	step, steps := 30*time.Second, 24*120
	if full {
		step, steps = time.Second, 24*3600
	}
	for name, algo := range others {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newReal(t), "day")
			l := perWindow(60, 10*time.Minute)
			most, early := int64(0), int64(0)
			for i := range steps {
				w.pass(step)
				w.ask(algo, ask(l, 1, 1))
				if i%97 == 0 {
					most = max(most, w.client().MemoryUsage(t.Context(), w.key).Val())
				}
				if i == steps/12 {
					early = most
				}
			}
			t.Logf("%d bytes", most)
			if most > early+64 { // numbers grow by a digit
				t.Errorf("%d bytes at most in the first two hours, %d in the day", early, most)
			}
		})
	}
}
