package hybrid_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// A load is random callers of one key on some limiters for some time.
type load struct {
	lims    []*hybrid.Limiter
	own     []record // what each limiter admitted, but for degraded decisions
	all     record
	largest int
	stop    time.Time
}

// run starts callers of each limiter and waits for their end. Some wait for their
// permits, some cancel, some pause until the next burst.
func (l *load) run(t *testing.T, rnd *rand.Rand, callers int, pause time.Duration) {
	synctest.Wait() // in a bubble only
	l.own = make([]record, len(l.lims))
	var working sync.WaitGroup
	for i, lim := range l.lims {
		for range callers {
			seed := rnd.Uint64()
			working.Go(func() {
				rnd := rand.New(rand.NewPCG(seed, 2))
				for time.Now().Before(l.stop) {
					for range 1 + rnd.IntN(5) {
						l.call(t, lim, &l.own[i], rnd)
					}
					time.Sleep(time.Duration(rnd.Int64N(int64(2 * pause))))
					if rnd.IntN(20) == 0 {
						time.Sleep(time.Duration(rnd.Int64N(int64(700 * time.Millisecond))))
					}
				}
			})
		}
	}
	working.Wait()
}

func (l *load) call(t *testing.T, lim *hybrid.Limiter, own *record, rnd *rand.Rand) {
	n := 1
	if rnd.IntN(4) == 0 {
		n += rnd.IntN(l.largest)
	}
	ctx := t.Context()
	if rnd.IntN(6) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(rnd.Int64N(int64(20*time.Millisecond))))
		defer cancel()
	}
	ask := lim.AllowN
	if rnd.IntN(6) == 0 {
		ask = lim.WaitN
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
	}
	res, err := ask(ctx, "k", n)
	if err == nil && res.Allowed && res.Source != hybrid.SourceDegraded {
		own.add(n)
		l.all.add(n)
	}
}

// loadLimit is a limit that a load exceeds.
func loadLimit(rnd *rand.Rand) hybrid.Limit {
	rate := []int{5, 30, 200, 1000}[rnd.IntN(4)]
	return hybrid.Per(rate*7, 7*time.Second).WithBurst(1 + rnd.IntN(2*rate))
}

func TestAllInstancesTogetherKeepTheBound(t *testing.T) {
	seeded(t, runs(3, 300), func(t *testing.T, r *redistest.Mini, rnd *rand.Rand) {
		limit := loadLimit(rnd)
		n := 1 + rnd.IntN(5)
		horizon := []time.Duration{10 * time.Millisecond, 50 * time.Millisecond, 200 * time.Millisecond, time.Second}[rnd.IntN(4)]
		l := load{largest: 1 + limit.Burst()/3}
		for range n {
			l.lims = append(l.lims, start(t, r, limit, hybrid.WithLeaseHorizon(horizon)))
		}
		warm(t, l.lims[0])
		r.Delay(time.Duration(rnd.Int64N(int64(10 * time.Millisecond))))
		l.stop = time.Now().Add(2 * time.Second)
		pause := time.Duration(float64(n*2) / perSecond(limit) * 0.4 * float64(time.Second))
		l.run(t, rnd, 2, min(max(pause, 5*time.Millisecond), 300*time.Millisecond))
		l.all.inBound(t, perSecond(limit), float64(limit.Burst()))
		for i, lim := range l.lims {
			want(t, fmt.Sprint("degraded decisions of limiter ", i), lim.Stats().Allowed[hybrid.SourceDegraded], 0)
		}
		if l.all.total() < limit.Burst()/2 {
			t.Errorf("only %d of a burst of %d were admitted", l.all.total(), limit.Burst())
		}
	})
}

func TestLostRepliesAndDeadInstancesKeepTheBound(t *testing.T) {
	seeded(t, runs(3, 300), func(t *testing.T, r *redistest.Mini, rnd *rand.Rand) {
		limit := loadLimit(rnd)
		l := load{largest: 1 + limit.Burst()/3, stop: time.Now().Add(2 * time.Second)}
		for range 4 {
			rdb := r.Client(advised)
			l.lims = append(l.lims, startOn(t, rdb, limit, hybrid.WithOutagePolicy(hybrid.FailClosed)))
			if rnd.IntN(2) == 0 {
				time.AfterFunc(time.Duration(rnd.Int64N(int64(2*time.Second))), func() { _ = rdb.Close() })
			}
		}
		var trouble sync.WaitGroup
		seed := rnd.Uint64()
		trouble.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, 3))
			for time.Now().Before(l.stop) {
				time.Sleep(time.Duration(rnd.Int64N(int64(200 * time.Millisecond))))
				switch rnd.IntN(3) {
				case 0:
					r.DropReplies(1 + rnd.IntN(3))
				case 1:
					r.FailNext(1, "LOADING Redis is loading the dataset in memory")
				case 2:
					r.Freeze()
					time.Sleep(time.Duration(rnd.Int64N(int64(80 * time.Millisecond))))
					r.Thaw()
				}
			}
			r.Heal()
		})
		l.run(t, rnd, 2, 20*time.Millisecond)
		trouble.Wait()
		l.all.inBound(t, perSecond(limit), float64(limit.Burst()))
	})
}

func TestLocalShareCapsAnInstance(t *testing.T) {
	seeded(t, runs(3, 300), func(t *testing.T, r *redistest.Mini, rnd *rand.Rand) {
		limit := loadLimit(rnd).WithBurst(20 + rnd.IntN(500))
		share := 0.1 + 0.6*rnd.Float64()
		l := load{stop: time.Now().Add(2 * time.Second)}
		for range 3 {
			l.lims = append(l.lims, start(t, r, limit, hybrid.WithLocalShare(share)))
		}
		l.largest = 1 + int(share*float64(limit.Burst()))/3
		r.Delay(time.Duration(rnd.Int64N(int64(10 * time.Millisecond))))
		l.run(t, rnd, 2, 20*time.Millisecond)
		l.all.inBound(t, perSecond(limit), float64(limit.Burst()))
		for i := range l.own {
			l.own[i].inBound(t, share*perSecond(limit), share*float64(limit.Burst()))
		}
	})
}
