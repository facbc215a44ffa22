package hybrid_test

import (
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// TestLeasedTakeAllocatesNothing stands still in time, so that nothing else
// happens meanwhile.
func TestLeasedTakeAllocatesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(1_000_000))
		for range 500 {
			allowN(t, lim, "k", 100)
			time.Sleep(time.Millisecond)
			settle()
		}
		ctx := t.Context()
		calls := r.Counts().Runs
		request := hybrid.Request{Key: "k", N: 1}
		allocs := testing.AllocsPerRun(1000, func() {
			if res, err := lim.Take(ctx, request); err != nil || res.Source != hybrid.SourceLease {
				t.Fatalf("%+v, %v", res, err)
			}
		})
		want(t, "allocations", allocs, 0)
		want(t, "calls", r.Counts().Runs, calls)
	})
}

// What is decided here without a lease allocates nothing either: a flood of
// refused requests, or an outage, leaves no garbage.
func TestRefusalsAndOutagesAllocateNothing(t *testing.T) {
	for source, prepare := range map[hybrid.Source]func(*testing.T, *redistest.Mini) *hybrid.Limiter{
		hybrid.SourceDenied: func(t *testing.T, r *redistest.Mini) *hybrid.Limiter {
			lim := start(t, r, hybrid.PerHour(1))
			drain(t, lim, "k")
			return lim
		},
		hybrid.SourcePrefilter: func(t *testing.T, r *redistest.Mini) *hybrid.Limiter {
			lim := start(t, r, hybrid.PerHour(10), hybrid.WithLocalShare(0.2))
			drain(t, lim, "k")
			return lim
		},
		hybrid.SourceDegraded: func(t *testing.T, r *redistest.Mini) *hybrid.Limiter {
			lim := start(t, r, hybrid.PerSecond(1_000_000))
			r.Kill()
			trip(t, lim)
			return lim
		},
	} {
		t.Run(source.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *redistest.Mini) {
				lim := prepare(t, r)
				allow(t, lim)
				ctx := t.Context()
				request := hybrid.Request{Key: "k", N: 1}
				allocs := testing.AllocsPerRun(1000, func() {
					if res, err := lim.Take(ctx, request); err != nil || res.Source != source {
						t.Fatalf("%+v, %v", res, err)
					}
				})
				want(t, "allocations", allocs, 0)
			})
		})
	}
}

// hot returns a limiter that holds a large lease of "k".
func hot(b *testing.B) *hybrid.Limiter {
	r := redistest.MiniTCP(b)
	lim := start(b, r, hybrid.PerSecond(1_000_000_000), hybrid.WithLeaseHorizon(time.Second))
	for begun := time.Now(); time.Since(begun) < 500*time.Millisecond; {
		allow(b, lim)
	}
	return lim
}

// fromLeases reports what part of the decisions a lease made.
func fromLeases(b *testing.B, lim *hybrid.Limiter) {
	s := lim.Stats()
	b.ReportMetric(100*float64(s.Allowed[hybrid.SourceLease])/float64(decisions(s)), "%leased")
}

func BenchmarkTakeLease(b *testing.B) {
	b.Run("serial", func(b *testing.B) {
		lim := hot(b)
		ctx := b.Context()
		b.ReportAllocs()
		for b.Loop() {
			_, _ = lim.Take(ctx, hybrid.Request{Key: "k", N: 1})
		}
		fromLeases(b, lim)
	})
	b.Run("parallel", func(b *testing.B) {
		lim := hot(b)
		ctx := b.Context()
		b.ReportAllocs()
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				_, _ = lim.Take(ctx, hybrid.Request{Key: "k", N: 1})
			}
		})
		fromLeases(b, lim)
	})
}

func BenchmarkTakeDenied(b *testing.B) {
	r := redistest.MiniTCP(b)
	lim := start(b, r, hybrid.PerHour(1), hybrid.WithLeaseHorizon(5*time.Second))
	allow(b, lim)
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = lim.Take(ctx, hybrid.Request{Key: "k", N: 1})
	}
}

func BenchmarkTakeDegraded(b *testing.B) {
	for _, limit := range []hybrid.Limit{hybrid.PerSecond(1_000_000_000), hybrid.PerHour(1)} {
		b.Run(map[bool]string{true: "refused", false: "admitted"}[limit.Count() == 1], func(b *testing.B) {
			rdb := redistest.MiniTCP(b).Client(advised)
			if err := rdb.Close(); err != nil { // no Redis, and no probes that take time
				b.Fatal(err)
			}
			lim := startOn(b, rdb, limit)
			allow(b, lim)
			ctx := b.Context()
			b.ReportAllocs()
			for b.Loop() {
				_, _ = lim.Take(ctx, hybrid.Request{Key: "k", N: 1})
			}
		})
	}
}

// BenchmarkRateLimiterAllow is the yardstick.
func BenchmarkRateLimiterAllow(b *testing.B) {
	b.Run("admitted", func(b *testing.B) {
		lim := rate.NewLimiter(1e9, 1e9)
		for b.Loop() {
			lim.Allow()
		}
	})
	b.Run("refused", func(b *testing.B) {
		lim := rate.NewLimiter(1e-9, 1)
		for b.Loop() {
			lim.Allow()
		}
	})
}
