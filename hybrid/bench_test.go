package hybrid_test

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// The benchmarks of this file stand side by side: a path of the limiter beside
// what a user of x/time/rate pays for a decision, and beside the floor, which is one
// clock read and one atomic addition. They take turns, a slice of some thousand
// operations each, so that a busy machine is busy for all of them. For each, the
// median slice is reported in nanoseconds per operation, and with ":rate" the
// median of its ratios to x/time/rate in the same turn. (ns/op is a whole turn.)
//
//	go test ./hybrid -run='^$' -bench=SideBySide -benchmem

// plenty is a limit that no benchmark uses up.
var plenty = hybrid.PerSecond(1_000_000_000)

// A side is one of those that take turns.
type side struct {
	name string
	op   func()
}

// yardsticks are the sides that a path is measured by.
func yardsticks() []side {
	var (
		lim   = rate.NewLimiter(1e9, 1e9)
		epoch = time.Now()
		n     atomic.Int64
	)
	return []side{
		{"rate", func() { lim.Allow() }},
		{"floor", func() {
			if n.Add(-1) > int64(time.Since(epoch)) {
				panic("the clock went back")
			}
		}},
	}
}

// sideBySide has the sides take turns on one goroutine, and then on all cores.
func sideBySide(b *testing.B, sides ...side) {
	sides = append(sides, yardsticks()...)
	b.Run("serial", func(b *testing.B) { takeTurns(b, sides, 1) })
	b.Run("parallel", func(b *testing.B) { takeTurns(b, sides, runtime.GOMAXPROCS(0)) })
}

// takeTurns measures slices.
func takeTurns(b *testing.B, sides []side, cores int) {
	b.ReportAllocs()
	t := newTeam(cores - 1)
	defer t.dismiss()
	times := make([][]float64, len(sides))
	for b.Loop() {
		for i, s := range sides {
			times[i] = append(times[i], t.slice(s.op))
		}
	}
	yard := times[len(sides)-2]
	for i, s := range sides {
		ratios := make([]float64, len(yard))
		for k := range yard {
			ratios[k] = times[i][k] / yard[k]
		}
		b.ReportMetric(median(times[i]), s.name+"-ns")
		if s.name != "rate" {
			b.ReportMetric(median(ratios), s.name+":rate")
		}
	}
}

// A team are goroutines that begin a slice at the same moment, each on a core that
// it has at that moment.
type team struct {
	mates       int64
	op          func()
	turn, start atomic.Int64
	ready, done atomic.Int64
	group       sync.WaitGroup
}

const slice = 2000

func newTeam(mates int) *team {
	t := &team{mates: int64(mates)}
	for range mates {
		t.group.Go(func() {
			for turn := int64(1); ; turn++ {
				await(&t.turn, turn)
				t.ready.Add(1)
				await(&t.start, turn)
				if t.op == nil {
					return
				}
				for range slice {
					t.op()
				}
				t.done.Add(1)
			}
		})
	}
	return t
}

// slice is how long an operation takes, in nanoseconds, over all who work.
func (t *team) slice(op func()) float64 {
	t.op = op
	turn := t.turn.Add(1)
	await(&t.ready, turn*t.mates)
	t.start.Store(turn)
	begun := time.Now()
	for range slice {
		op()
	}
	await(&t.done, turn*t.mates)
	return float64(time.Since(begun)) / slice / float64(t.mates+1)
}

func (t *team) dismiss() {
	t.op = nil
	t.start.Store(t.turn.Add(1))
	t.group.Wait()
}

func await(x *atomic.Int64, least int64) {
	for spins := 0; x.Load() < least; spins++ {
		if spins%1000 == 999 {
			runtime.Gosched()
		}
	}
}

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return x[len(x)/2]
}

// fromOnly complains unless a source made the decisions of op.
func fromOnly(b *testing.B, lim *hybrid.Limiter, source hybrid.Source, op func()) {
	b.Helper()
	before := lim.Stats()
	op()
	after := lim.Stats()
	of := func(s hybrid.Stats) uint64 { return s.Allowed[source] + s.Refused[source] }
	if all := decisions(after) - decisions(before); of(after)-of(before) < all*99/100 {
		b.Logf("of %d decisions only %d were made by %v: the machine is too busy for this", all, of(after)-of(before), source)
	}
}

// BenchmarkSideBySideLease is the path of a hot key.
func BenchmarkSideBySideLease(b *testing.B) {
	lim := hot(b)
	k := lim.Key("k")
	ctx := b.Context()
	fromOnly(b, lim, hybrid.SourceLease, func() {
		sideBySide(b, side{"lease", func() { _, _ = lim.Allow(ctx, "k") }}, side{"handle", func() { _, _ = k.Allow(ctx) }})
	})
}

// BenchmarkSideBySideDenied is a refusal of Redis that stands.
func BenchmarkSideBySideDenied(b *testing.B) {
	lim := start(b, redistest.MiniTCP(b), hybrid.PerHour(1), hybrid.WithLeaseHorizon(5*time.Second))
	drain(b, lim, "k")
	ctx := b.Context()
	fromOnly(b, lim, hybrid.SourceDenied, func() {
		sideBySide(b, side{"denied", func() { _, _ = lim.Allow(ctx, "k") }})
	})
}

// BenchmarkSideBySidePrefilter is a local share that is used up.
func BenchmarkSideBySidePrefilter(b *testing.B) {
	lim := start(b, redistest.MiniTCP(b), hybrid.PerHour(10), hybrid.WithLocalShare(0.2))
	drain(b, lim, "k")
	ctx := b.Context()
	fromOnly(b, lim, hybrid.SourcePrefilter, func() {
		sideBySide(b, side{"prefilter", func() { _, _ = lim.Allow(ctx, "k") }})
	})
}

// BenchmarkSideBySideDegraded is the outage policy, admitting and refusing.
func BenchmarkSideBySideDegraded(b *testing.B) {
	for name, limit := range map[string]hybrid.Limit{"admitted": plenty, "refused": hybrid.PerHour(1)} {
		rdb := redistest.MiniTCP(b).Client(advised)
		if err := rdb.Close(); err != nil { // no Redis, and no probes that take time
			b.Fatal(err)
		}
		lim := startOn(b, rdb, limit)
		for !lim.Stats().Degraded {
			allow(b, lim)
		}
		ctx := b.Context()
		b.Run(name, func(b *testing.B) {
			fromOnly(b, lim, hybrid.SourceDegraded, func() {
				sideBySide(b, side{"degraded", func() { _, _ = lim.Allow(ctx, "k") }})
			})
		})
	}
}
