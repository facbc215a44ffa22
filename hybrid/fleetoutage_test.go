package hybrid_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// A struck fleet is one that announces itself, and to which something happens.
type struck struct {
	lims  []*hybrid.Limiter
	rdbs  []*redis.Client
	begun time.Time

	mu       sync.Mutex // guards what follows
	admitted []int      // per tick
	bySource map[hybrid.Source]int
	failed   int
}

// strike runs n instances of one limit for a length under a load, and what happens
// to them beside it.
func strike(t *testing.T, r *redistest.Mini, n int, limit hybrid.Limit, length time.Duration, load fleetLoad, happens func(f *struck), options ...hybrid.Option) *struck {
	t.Helper()
	f := &struck{admitted: make([]int, length/ticks+1000), bySource: map[hybrid.Source]int{}}
	for range n {
		rdb := r.Client(advised)
		lim := startOn(t, rdb, limit, append([]hybrid.Option{hybrid.WithName("fleet"), hybrid.Announced()}, options...)...)
		warm(t, lim)
		f.lims, f.rdbs = append(f.lims, lim), append(f.rdbs, rdb)
	}
	r.Delay(time.Millisecond)
	time.Sleep(3 * time.Second) // everyone has heard of everyone
	synctest.Wait()
	f.begun = time.Now()
	var wg sync.WaitGroup
	wg.Go(func() { happens(f) })
	for i, lim := range f.lims {
		rnd := rand.New(rand.NewPCG(7, uint64(i)))
		wg.Go(func() {
			for at := time.Duration(0); at < length; at = time.Since(f.begun) {
				for range poisson(rnd, load(i, at)*ticks.Seconds()) {
					wg.Go(func() { f.ask(lim) })
				}
				time.Sleep(ticks)
			}
		})
	}
	wg.Wait()
	for _, lim := range f.lims {
		want(t, "answers that make no sense", lim.Stats().RedisCalls["protocol"], 0)
	}
	return f
}

func (f *struck) ask(lim *hybrid.Limiter) {
	res, err := lim.Allow(context.Background(), "k")
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err != nil:
		f.failed++
	case res.Allowed:
		f.admitted[int(time.Since(f.begun)/ticks)]++
		f.bySource[res.Source]++
	}
}

// between is how much was admitted in [from, to).
func (f *struck) between(from, to time.Duration) int {
	total := 0
	for _, n := range f.admitted[from/ticks : to/ticks] {
		total += n
	}
	return total
}

// within fails unless a number is from that part of what is wanted to that one.
func within(t *testing.T, what string, got int, wanted, low, high float64) {
	t.Helper()
	if part := float64(got) / wanted; part < low || part > high {
		t.Errorf("%s: %d, want %.0f to %.0f", what, got, low*wanted, high*wanted)
	}
	t.Logf("%s: %.3f of %v", what, float64(got)/wanted, wanted)
}

// evenly and skewed share a demand of 2000 per second among n instances.
func evenly(n int) fleetLoad {
	return func(int, time.Duration) float64 { return 2000 / float64(n) }
}

func skewed(n int) fleetLoad {
	return func(i int, _ time.Duration) float64 {
		if i == 0 {
			return 0.9 * 2000
		}
		return 0.1 * 2000 / float64(n-1)
	}
}

// TestOutageOfAFleetKeepsTheTotal: whoever has the demand has the part, so that an
// outage is used as well as the time before.
func TestOutageOfAFleetKeepsTheTotal(t *testing.T) {
	for _, n := range []int{4, 8} {
		for name, load := range map[string]fleetLoad{"even": evenly(n), "ninety to ten": skewed(n)} {
			t.Run(fmt.Sprint(n, " ", name), func(t *testing.T) {
				bubble(t, func(t *testing.T, r *redistest.Mini) {
					f := strike(t, r, n, hybrid.PerSecond(1000), 9*time.Second, load, func(f *struck) {
						time.Sleep(3 * time.Second)
						for _, lim := range f.lims {
							want(t, "instances", lim.Stats().Instances, n)
						}
						r.Freeze()
						time.Sleep(3 * time.Second)
						r.Thaw()
					})
					within(t, "before", f.between(time.Second, 3*time.Second), 2000, 0.95, 1.05)
					within(t, "in the outage", f.between(3200*time.Millisecond, 6*time.Second), 2800, 0.95, 1.01)
					within(t, "with its edges", f.between(2500*time.Millisecond, 7500*time.Millisecond), 5000, 0.9, 1.05)
					within(t, "afterwards", f.between(7500*time.Millisecond, 9*time.Second), 1500, 0.9, 1.1)
					want(t, "errors", f.failed, 0)
					run := fleetRun{admitted: f.admitted}
					if x := run.excess(1000); x > 1000+1000 {
						t.Errorf("a window admits %.0f above the rate", x)
					}
					t.Logf("excess %.0f", run.excess(1000))
				})
			})
		}
	}
}

// TestPartitionLeavesTheCutOffTheirParts: who cannot reach Redis goes on with its
// part, and the others get that much less, until it is thought gone.
func TestPartitionLeavesTheCutOffTheirParts(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		f := strike(t, r, 4, hybrid.PerSecond(1000), 20*time.Second, evenly(4), func(f *struck) {
			time.Sleep(3 * time.Second)
			_ = f.rdbs[3].Close()
		}, hybrid.WithReservation(12*time.Second))
		within(t, "before", f.between(time.Second, 3*time.Second), 2000, 0.95, 1.05)
		within(t, "while it shows", f.between(3*time.Second, 6500*time.Millisecond), 3500, 0.9, 1.3)
		within(t, "cut off", f.between(6500*time.Millisecond, 14*time.Second), 7500, 0.95, 1.01)
		within(t, "when it is no longer missed", f.between(19*time.Second, 20*time.Second), 1000, 1.15, 1.3)
	})
}
