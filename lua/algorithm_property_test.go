package lua_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/resilient-go/limiter/lua"
)

// Each algorithm that counts in windows decides, and says when something fits again,
// as its model does: any limit, any times and steps of the clock, requests of any
// size, that queue or not, charges, looks and resets.
func TestWindowsAgreeWithTheirModels(t *testing.T) {
	models := map[*lua.Algorithm]func(n, period int64) model{
		lua.FixedWindow:   func(n, period int64) model { return &fixedModel{n: n, period: period} },
		lua.SlidingLog:    func(n, period int64) model { return &logModel{n: n, period: period} },
		lua.RollingWindow: func(n, period int64) model { return &rollingModel{n: n, period: period} },
	}
	for name, algo := range others {
		if !algo.Timed {
			continue
		}
		t.Run(name+" on miniredis", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newMini(t)
				rapid.Check(inBubble{t}, func(rt *rapid.T) { keepTo(rt, s, algo, models[algo]) })
			})
		})
		t.Run(name+" on redis-server", func(t *testing.T) {
			s := newReal(t)
			rapid.Check(t, func(rt *rapid.T) { keepTo(rt, s, algo, models[algo]) })
		})
	}
}

// anyWindow draws a limit of n per window.
var anyWindow = rapid.Custom(func(t *rapid.T) limit {
	period := rapid.SampledFrom([]time.Duration{
		time.Millisecond, 7 * time.Millisecond, 1900 * time.Millisecond, time.Second, 3 * time.Second, time.Minute,
		time.Hour, 24 * time.Hour, 366 * 24 * time.Hour,
	}).Draw(t, "period")
	for {
		n := rapid.OneOf(rapid.Int64Range(1, 10), rapid.Int64Range(1, 10_000), rapid.Int64Range(1, 1_000_000_000)).Draw(t, "n")
		if l := perWindow(n, period); l.exact() {
			return l
		}
	}
})

func keepTo(rt *rapid.T, s server, algo *lua.Algorithm, newModel func(n, period int64) model) {
	l := anyWindow.Draw(rt, "limit")
	n := l.burst / unit
	if algo == lua.SlidingLog && n > lua.MaxLog {
		n %= lua.MaxLog
		n++
		l = limit{num: l.num, den: l.den, burst: n * unit}
	}
	period := ceil(rat(l.burst).Quo(rat(l.burst), l.rate()))
	w := newWorld(rt, s, "model")
	w.client().Del(w.Context(), w.key, "ttl "+w.key)
	m := newModel(n, period)
	for seq := int64(1); seq <= 25; seq++ {
		switch rapid.IntRange(0, 6).Draw(rt, "pace") {
		case 0, 1:
		case 2:
			w.move(rapid.Int64Range(1, 10).Draw(rt, "us"))
		case 3, 4:
			w.move(rapid.Int64Range(1, period/3+1).Draw(rt, "us of a part"))
		case 5:
			w.move(rapid.Int64Range(period-1, 2*period+2_000_000).Draw(rt, "us of a period"))
		default:
			w.move(-rapid.OneOf(rapid.Int64Range(1, 100), rapid.Int64Range(1, 2*period)).Draw(rt, "us back"))
		}
		if w.ttl(w.key) == -2 { // by the time that passed, wherever the clock is now
			m = newModel(n, period)
		}
		op := rapid.IntRange(0, 9).Draw(rt, "op")
		if op < 2 {
			script := algo.Peek
			if op == 1 {
				script = algo.Reset
			}
			var a timedAnswer
			of := m.copy() // a look changes nothing, not even where a window begins
			of.at(w.now)
			if op == 0 {
				w.undisturbed(func() { a = w.look(algo, script, l) })
			} else {
				a = w.look(algo, script, l)
				of = newModel(n, period)
				of.at(w.now)
				m = of
			}
			compare(rt, script.Name(), l, a, of, []int64{1}, []int64{of.fits(1)})
			continue
		}
		m.at(w.now)
		ask := message{id: "holder", seq: seq, limit: l, ttl: time.Second}
		charge := int64(0)
		if op == 2 {
			charge = rapid.Int64Range(-2*n, 2*n).Draw(rt, "charge")
		}
		for range rapid.IntRange(1, 3).Draw(rt, "runs") {
			ask.needs = append(ask.needs, need{
				n:     rapid.OneOf(rapid.Just(int64(1)), rapid.Int64Range(1, n)).Draw(rt, "tokens"),
				count: rapid.Int64Range(1, 5).Draw(rt, "count"), queue: rapid.Bool().Draw(rt, "queue"),
			})
		}
		ask.charge = charge * unit
		a := w.ask(algo, ask)
		if charge > 0 {
			m.take(max(0, min(charge, m.left()+n)))
		} else {
			m.give(-charge)
		}
		var sizes, granted []int64
		blocked := false
		for _, need := range ask.needs {
			can := int64(0)
			if !blocked {
				can = max(0, min(need.count, m.left()/need.n))
			}
			m.take(can * need.n)
			blocked = blocked || can < need.count && need.queue
			granted = append(granted, can)
			sizes = append(sizes, need.n)
		}
		fits := make([]int64, len(sizes))
		for i, need := range ask.needs {
			if granted[i] != a.granted[i] {
				rt.Fatalf("%+v was granted %v, want %v", ask, a.granted, granted)
			}
			if granted[i] < need.count {
				fits[i] = max(1, m.fits(need.n))
			}
		}
		compare(rt, "acquire", l, a, m, sizes, fits)
		if m.reset() > 0 { // something is stored
			if ttl := w.ttl(w.key); ttl < m.reset()/1000 || ttl > m.reset()/1000+1001 {
				rt.Fatalf("the key lives for %d ms, and all is free in %d us", ttl, m.reset())
			}
		}
	}
}

func compare(rt *rapid.T, what string, l limit, a timedAnswer, m model, sizes, fits []int64) {
	rt.Helper()
	// No more debt than one limit is told of.
	if a.tokens != max(m.left(), -a.under(l).burst/unit)*unit || a.reset != m.reset() {
		rt.Fatalf("%s: %d tokens, all in %d us, want %d, %d", what, a.tokens/unit, a.reset, m.left(), m.reset())
	}
	for i := range fits {
		if a.fits[i] != fits[i] {
			rt.Fatalf("%s: %d fit in %d us, want %d", what, sizes[i], a.fits[i], fits[i])
		}
	}
}

// stored is all that the key holds, of whatever type.
func (w *world) stored() any {
	w.Helper()
	ctx := w.Context()
	switch kind := w.client().Type(ctx, w.key).Val(); kind {
	case "hash":
		return w.client().HGetAll(ctx, w.key).Val()
	case "zset":
		return w.client().ZRangeWithScores(ctx, w.key, 0, -1).Val()
	case "none":
		return nil
	default:
		w.Fatalf("the key is a %s", kind)
		return nil
	}
}

// undisturbed runs f and fails if it changed what is stored, of whatever type.
func (w *world) undisturbed(f func()) {
	w.Helper()
	dump := func() string { return fmt.Sprint(w.stored()) }
	before, ttl := dump(), w.ttl(w.key)
	f()
	if after := dump(); after != before || w.ttl(w.key) != ttl {
		w.Fatalf("a look changed the key")
	}
}
