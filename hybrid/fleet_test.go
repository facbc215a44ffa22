package hybrid_test

import (
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// A fleetLoad is the demand on instance i at an instant, in requests per second.
type fleetLoad func(i int, at time.Duration) float64

// ticks is how often the instances of a fleet look at their demand.
const ticks = time.Millisecond

// A fleetRun is what a fleet did: for each tick what was admitted and asked, and the
// calls to Redis after the first second.
type fleetRun struct {
	admitted, asked []int
	calls           float64 // per second
}

// fleet runs n instances of one limit on one key, 2 ms away from Redis.
func fleet(t *testing.T, r *redistest.Mini, n int, limit hybrid.Limit, length time.Duration, demand fleetLoad) fleetRun {
	t.Helper()
	limiters := make([]*hybrid.Limiter, n)
	for i := range limiters {
		limiters[i] = start(t, r, limit, hybrid.WithName("fleet"))
		warm(t, limiters[i])
	}
	r.Delay(2 * time.Millisecond)
	synctest.Wait()
	out := fleetRun{
		admitted: make([]int, length/ticks+1000), asked: make([]int, length/ticks+1000),
	}
	var (
		mu     sync.Mutex // guards out
		wg     sync.WaitGroup
		begun  = time.Now()
		warmed redistest.Counts
	)
	for i, lim := range limiters {
		rnd := rand.New(rand.NewPCG(7, uint64(i)))
		wg.Go(func() {
			for k := 0; ; k++ {
				at := time.Since(begun)
				if at >= length {
					return
				}
				if i == 0 && at >= time.Second && warmed.EvalSHA == 0 {
					warmed = r.Counts()
				}
				for range poisson(rnd, demand(i, at)*ticks.Seconds()) {
					wg.Go(func() {
						res := allow(t, lim)
						mu.Lock()
						defer mu.Unlock()
						out.asked[k]++
						if res.Allowed {
							out.admitted[int(time.Since(begun)/ticks)]++
						}
					})
				}
				time.Sleep(ticks)
			}
		})
	}
	wg.Wait()
	out.calls = float64(r.Counts().Sub(warmed).EvalSHA) / (length - time.Second).Seconds()
	return out
}

func poisson(rnd *rand.Rand, mean float64) int {
	n := 0
	for p := rnd.Float64(); p > math.Exp(-mean); p *= rnd.Float64() {
		n++
	}
	return n
}

// excess is the most that any window admitted above the rate.
func (r fleetRun) excess(rate float64) float64 {
	// A window is a pair of prefixes; the best start for each end is the lowest.
	sum, lowest, worst := 0.0, 0.0, math.Inf(-1)
	for _, n := range r.admitted {
		lowest = math.Min(lowest, sum)
		sum += float64(n)
		worst = math.Max(worst, sum-lowest-rate*ticks.Seconds())
		sum -= rate * ticks.Seconds()
	}
	return worst
}

func sum(n []int) float64 {
	total := 0
	for _, v := range n {
		total += v
	}
	return float64(total)
}

// central is what one bucket admits of the same arrivals.
func (r fleetRun) central(rate, burst float64) float64 {
	tokens, total := burst, 0.0
	for _, n := range r.asked {
		tokens = math.Min(burst, tokens+rate*ticks.Seconds())
		got := math.Min(float64(n), math.Floor(tokens))
		tokens -= got
		total += got
	}
	return total
}

const (
	fleetSize = 20
	fleetRate = 1000
)

func even(times float64) fleetLoad {
	return func(int, time.Duration) float64 { return times * fleetRate / fleetSize }
}

func zipf(times float64) fleetLoad {
	norm := 0.0
	for i := range fleetSize {
		norm += 1 / float64(i+1)
	}
	return func(i int, _ time.Duration) float64 { return times * fleetRate / norm / float64(i+1) }
}

func mostOnOne(times float64) fleetLoad {
	return func(i int, _ time.Duration) float64 {
		if i == 0 {
			return times * fleetRate * 0.9
		}
		return times * fleetRate * 0.1 / (fleetSize - 1)
	}
}

func pulses(_ int, at time.Duration) float64 {
	if at%(4*time.Second) < 3*time.Second {
		return 0.5 * fleetRate / fleetSize
	}
	return 6 * fleetRate / fleetSize
}

// halves moves the whole demand between two halves of the fleet.
func halves(i int, at time.Duration) float64 {
	if (int(at/(1500*time.Millisecond))+i)%2 == 0 {
		return 4 * fleetRate / fleetSize
	}
	return 0
}

// A fleet uses up the limit, never more, and asks Redis about once per horizon
// and instance, whatever the load and however it is spread.
func TestFleetUsesTheLimit(t *testing.T) {
	for _, c := range []struct {
		name  string
		load  fleetLoad
		use   float64 // at least, of what one central bucket admits
		calls float64 // at most, per second
	}{
		{"twice the limit", even(2), 0.98, 120},
		{"ten times the limit", even(10), 0.98, 120},
		{"just the limit", even(1), 0.98, 120},
		{"half the limit", even(0.5), 0.995, 120},
		{"zipf", zipf(2), 0.97, 120},
		{"most on one", mostOnOne(2), 0.97, 120},
		{"pulses", pulses, 0.95, 0},
		{"halves", halves, 0.90, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *redistest.Mini) {
				out := fleet(t, r, fleetSize, hybrid.PerSecond(fleetRate), 6*time.Second, c.load)
				admitted, central := sum(out.admitted), out.central(fleetRate, fleetRate)
				t.Logf("use %.3f, excess %.0f, %.0f calls/s", admitted/central, out.excess(fleetRate), out.calls)
				if admitted < c.use*central {
					t.Errorf("admitted %.0f of %.0f: %.3f, want at least %.3f", admitted, central, admitted/central, c.use)
				}
				if e := out.excess(fleetRate); e > fleetRate {
					t.Errorf("a window admitted %.0f above the rate with a burst of %d", e, fleetRate)
				}
				if c.calls > 0 && out.calls > c.calls {
					t.Errorf("%.0f calls per second, want at most %.0f", out.calls, c.calls)
				}
			})
		})
	}
}

// Instances with the same demand get the same.
func TestFleetIsFair(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		synctest.Wait()
		var got [2]atomic.Int64
		var wg sync.WaitGroup
		for i := range got {
			lim := start(t, r, hybrid.PerSecond(200), hybrid.WithName("fleet"))
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 2500 * time.Microsecond)
				for begun := time.Now(); time.Since(begun) < 8*time.Second; time.Sleep(5 * time.Millisecond) {
					if allow(t, lim).Allowed && time.Since(begun) > 3*time.Second { // the first burst is spent
						got[i].Add(1)
					}
				}
			})
		}
		wg.Wait()
		a, b := float64(got[0].Load()), float64(got[1].Load())
		t.Logf("%v and %v", a, b)
		if math.Abs(a-b) > 0.1*math.Max(a, b) || a+b < 950 {
			t.Errorf("%v and %v with equal demand", a, b)
		}
	})
}

// A request for more than an instance's part will ever hold still gets through:
// for a while nothing is lent, and the root fills up for it.
func TestLargeRequestBesideLeases(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		const n = 5
		limiters := make([]*hybrid.Limiter, n)
		for i := range limiters {
			limiters[i] = start(t, r, hybrid.PerSecond(1000), hybrid.WithName("fleet"))
		}
		var wg sync.WaitGroup
		begun := time.Now()
		for _, lim := range limiters { // together 90 % of the limit, after an overload
			wg.Go(func() {
				for time.Since(begun) < 8*time.Second {
					per := 180.0
					if time.Since(begun) < 2*time.Second {
						per = 500
					}
					allow(t, lim)
					time.Sleep(time.Duration(float64(time.Second) / per))
				}
			})
		}
		time.Sleep(2 * time.Second)
		asked := time.Now()
		if _, err := limiters[0].WaitN(t.Context(), "k", 500); err != nil {
			t.Error(err)
		}
		// One lease of a second, and 500 tokens at the tenth of the rate that is free.
		if d := time.Since(asked); d > time.Second+5*time.Second+500*time.Millisecond {
			t.Errorf("500 tokens took %v", d)
		}
		wg.Wait()
	})
}
