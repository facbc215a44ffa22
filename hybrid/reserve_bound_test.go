package hybrid_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// dues are admissions by the instant at which they count.
type dues struct {
	mu  sync.Mutex
	all []due
}

type due struct {
	at time.Time
	n  int
}

func (d *dues) add(at time.Time, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, due{at, n})
}

// record gives them in order.
func (d *dues) record() *record {
	d.mu.Lock()
	defer d.mu.Unlock()
	slices.SortFunc(d.all, func(a, b due) int { return a.at.Compare(b.at) })
	r := &record{}
	for _, x := range d.all {
		r.at, r.n = append(r.at, x.at), append(r.n, x.n)
	}
	return r
}

// In every window, what is taken and what falls due in it stays within burst +
// rate·w, whoever books and takes, from leases with and without a rate.
func TestReservationsKeepTheBoundWhenTheyFallDue(t *testing.T) {
	limits := []hybrid.Limit{
		hybrid.PerSecond(100), hybrid.PerSecond(1000).WithBurst(100), hybrid.PerSecond(10).WithBurst(30), hybrid.Per(7, 3*time.Second).WithBurst(20),
	}
	var booked atomic.Int64
	seeded(t, runs(5, 400), func(t *testing.T, r *redistest.Mini, rnd *rand.Rand) {
		limit := limits[rnd.IntN(len(limits))]
		delay := time.Duration(rnd.IntN(3)) * time.Millisecond
		r.Delay(delay)
		var all sync.WaitGroup
		var d dues
		demand := perSecond(limit) * (0.2 + 2*rnd.Float64())
		books := rnd.Float64() / 2 // part of the requests
		instances := 1 + rnd.IntN(4)
		for i := range instances {
			lim := start(t, r, limit, named)
			rnd := rand.New(rand.NewPCG(rnd.Uint64(), uint64(i)))
			all.Go(func() {
				for begun := time.Now(); time.Since(begun) < 6*time.Second; {
					time.Sleep(time.Duration(rnd.ExpFloat64() * 1e9 * float64(instances) / demand))
					if rnd.Float64() >= books {
						if allow(t, lim).Allowed {
							d.add(time.Now(), 1)
						}
						continue
					}
					n := 1 + rnd.IntN(limit.Burst())
					b, err := lim.Reserve(t.Context(), hybrid.Request{Key: "k", N: n})
					if err == nil {
						d.add(time.Now().Add(b.Delay()), n)
						if b.Delay() > 0 {
							booked.Add(1)
						}
					}
				}
			})
		}
		all.Wait()
		// The instance learns when it is due, but for the time that the answer takes.
		d.record().inBound(t, perSecond(limit), float64(limit.Burst())+perSecond(limit)*delay.Seconds())
	})
	if n := booked.Load(); n < 5 {
		t.Errorf("only %d reservations were booked ahead", n)
	}
}

// Those who cancel before it is due, and those who settle for less, add no more than
// what they gave back while others had booked behind them.
func TestCancelledReservationsAddWhatCameBack(t *testing.T) {
	var cancelled atomic.Int64
	seeded(t, runs(4, 300), func(t *testing.T, r *redistest.Mini, rnd *rand.Rand) {
		limit := hybrid.Per(10+rnd.IntN(100), time.Second).WithBurst(5 + rnd.IntN(40))
		lims := []*hybrid.Limiter{start(t, r, limit, named), start(t, r, limit, named)}
		var d, back dues
		demand := perSecond(limit) * (0.5 + 2*rnd.Float64())
		for begun := time.Now(); time.Since(begun) < 5*time.Second; {
			time.Sleep(time.Duration(rnd.ExpFloat64() * 1e9 / demand))
			lim := lims[rnd.IntN(2)]
			if rnd.IntN(3) == 0 {
				if allow(t, lim).Allowed {
					d.add(time.Now(), 1)
				}
				continue
			}
			n := 1 + rnd.IntN(limit.Burst())
			b, err := lim.Reserve(t.Context(), hybrid.Request{Key: "k", N: n})
			switch {
			case err != nil:
			case rnd.IntN(3) > 0 || b.Delay() == 0:
				d.add(time.Now().Add(b.Delay()), n)
			default:
				time.AfterFunc(time.Duration(rnd.Int64N(int64(b.Delay()))), func() {
					want(t, "given back", b.Cancel(), n)
					back.add(time.Now(), n)
					cancelled.Add(1)
				})
			}
		}
		time.Sleep(10 * time.Second)
		// What is booked behind is due within the time of two bursts.
		most := back.record().most(time.Duration(2e9 * float64(limit.Burst()) / perSecond(limit)))
		d.record().inBound(t, perSecond(limit), float64(limit.Burst()+most))
		for _, lim := range lims {
			want(t, "lost", lim.Stats().TokensLost, 0)
		}
	})
	if n := cancelled.Load(); n < 10 {
		t.Errorf("only %d reservations were cancelled", n)
	}
}

// A limit that is served from parts of the rate makes room for what is booked.
func TestReservationsAreDueAlthoughLeasesHaveRates(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		limit := hybrid.PerSecond(1000)
		r.Delay(time.Millisecond)
		var d dues
		var all sync.WaitGroup
		lims := []*hybrid.Limiter{start(t, r, limit, named), start(t, r, limit, named), start(t, r, limit, named)}
		for _, lim := range lims[:2] { // twice the limit
			all.Go(func() {
				for begun := time.Now(); time.Since(begun) < 12*time.Second; time.Sleep(time.Millisecond) {
					if allow(t, lim).Allowed {
						d.add(time.Now(), 1)
					}
				}
			})
		}
		served := 0
		time.Sleep(3 * time.Second)
		for range 20 {
			if b, err := lims[2].Reserve(t.Context(), hybrid.Request{Key: "k", N: 300}); err == nil {
				if b.Delay() > 3*time.Second {
					t.Errorf("a delay of %v", b.Delay())
				}
				d.add(time.Now().Add(b.Delay()), 300)
				served++
			}
			time.Sleep(400 * time.Millisecond)
		}
		all.Wait()
		if served < 5 {
			t.Errorf("%d of 20 reservations", served)
		}
		d.record().inBound(t, 1000, 1001)
	})
}

// Whatever is reserved, settled, cancelled and taken, at several instances: what it
// all costs in the end and what is left are the burst, to the token.
func TestReservationsConserveTokens(t *testing.T) {
	seeded(t, runs(15, 2000), func(t *testing.T, r *redistest.Mini, rnd *rand.Rand) {
		burst := 1 + rnd.IntN(1000)
		limit := hybrid.Per(1, day).WithBurst(burst) // nothing comes in
		lims := []*hybrid.Limiter{start(t, r, limit, named), start(t, r, limit, named)}
		warmUp := rnd.IntN(2) == 0
		cost := 0
		type reserved struct {
			*hybrid.Reservation
			n int
		}
		var open []reserved
		for range 20 + rnd.IntN(100) {
			lim := lims[rnd.IntN(len(lims))]
			n := 1 + rnd.IntN(max(1, burst/4))
			switch rnd.IntN(4) {
			case 0:
				if allowN(t, lim, "k", n).Allowed {
					cost += n
				}
			case 1, 2:
				if b, err := lim.Reserve(t.Context(), hybrid.Request{Key: "k", N: n}); err == nil {
					cost += n
					open = append(open, reserved{b, n})
				}
			default:
				if len(open) == 0 {
					break
				}
				i := rnd.IntN(len(open))
				b, was := open[i], open[i].n
				if rnd.IntN(4) == 0 {
					cost -= b.Cancel()
					open = slices.Delete(open, i, i+1)
					break
				}
				// Within what is surely there, so that nothing is unaccounted.
				actual := rnd.IntN(was + 1)
				if cost+was < burst {
					actual = rnd.IntN(2*was + 1)
				}
				want(t, "error", b.Settle(actual), nil)
				cost += actual - was
				open[i].n = actual
			}
			if warmUp {
				time.Sleep(time.Duration(rnd.IntN(50)) * time.Millisecond)
			}
			settle()
		}
		time.Sleep(26 * time.Second) // all leases end
		sum, expired := 0, 0
		for _, lim := range lims {
			s := lim.Stats()
			sum += int(s.TokensLost + s.TokensUnaccounted)
			expired += int(s.TokensExpired)
		}
		want(t, "lost or unaccounted", sum, 0)
		level := float64(-cost)
		if rest := left(t, lims[0], "k"); rest > 0 || cost < burst {
			level = float64(rest) - float64(burst)
		} else if res := allow(t, lims[0]); true { // in debt: RetryAfter tells how deep
			level = 1 - float64(burst) - math.Round(res.RetryAfter.Seconds()/day.Seconds())
		}
		want(t, fmt.Sprintf("tokens gone of %d", burst), int(-level), cost+expired)
	})
}
