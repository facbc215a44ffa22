package hybrid_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// since is what was admitted from an instant on.
func (r *record) since(from time.Time) *record {
	r.mu.Lock()
	defer r.mu.Unlock()
	after := new(record)
	for i, at := range r.at {
		if !at.Before(from) {
			after.at = append(after.at, at)
			after.n = append(after.n, r.n[i])
		}
	}
	return after
}

// Under load, with one instance and with several, told at once or one after the
// other: no window admits more than the larger limit, and one lease after the last
// was told none more than the new one, which is used.
func TestSetLimitUnderLoadKeepsTheBound(t *testing.T) {
	for _, c := range []struct {
		from, to hybrid.Limit
		versions bool // of several changes the last one tells
	}{
		{hybrid.PerSecond(1000), hybrid.PerSecond(100), false},
		{hybrid.PerSecond(1000), hybrid.PerSecond(100).WithBurst(20), false},
		{hybrid.PerSecond(1000), hybrid.PerSecond(1000).WithBurst(50), true},
		{hybrid.PerSecond(100), hybrid.PerSecond(1000), true},
		{hybrid.PerSecond(100), hybrid.PerSecond(1000), false},
		{hybrid.PerSecond(100).WithBurst(20), hybrid.PerSecond(500).WithBurst(20), true},
	} {
		for _, n := range []int{1, 4} {
			seeded(t, runs(1, 50), func(t *testing.T, r *redistest.Mini, rnd *rand.Rand) {
				l := load{largest: 5}
				for range n {
					l.lims = append(l.lims, start(t, r, c.from, named))
				}
				warm(t, l.lims[0])
				r.Delay(time.Duration(rnd.Int64N(int64(5 * time.Millisecond))))
				begun := time.Now()
				l.stop = begun.Add(5 * time.Second)
				var changed time.Time
				var all sync.WaitGroup
				all.Go(func() {
					time.Sleep(1500 * time.Millisecond)
					for _, lim := range l.lims {
						if c.versions {
							setLimit(t, 1, c.to, lim)
						} else if err := lim.SetLimit(c.to); err != nil {
							t.Error(err)
						}
						changed = time.Now()
						time.Sleep(time.Duration(rnd.Int64N(int64(100 * time.Millisecond))))
					}
				})
				l.run(t, rnd, 4, time.Duration(n)*2*time.Millisecond)
				all.Wait()
				larger := max(perSecond(c.from), perSecond(c.to))
				l.all.inBound(t, larger, float64(max(c.from.Burst(), c.to.Burst())))
				// The pauses of the load leave some of a small burst unused.
				after := l.all.since(changed.Add(time.Second))
				after.inBound(t, perSecond(c.to), float64(c.to.Burst()))
				if rate := float64(after.total()) / 2; rate < 0.3*perSecond(c.to) {
					t.Errorf("%v to %v: %v per second are admitted under the new limit", c.from, c.to, rate)
				}
			})
		}
	}
}

// What is set last is what applies, whatever goes on meanwhile.
func TestSetLimitFromManySidesAtOnce(t *testing.T) {
	seeded(t, runs(3, 100), func(t *testing.T, r *redistest.Mini, rnd *rand.Rand) {
		some := []hybrid.Limit{
			hybrid.PerSecond(10), hybrid.PerSecond(1000), hybrid.PerHour(5), hybrid.Unlimited, hybrid.Blocked,
			hybrid.PerSecond(50).WithBurst(3), hybrid.Per(7, 3*time.Second).WithBurst(100),
		}
		lim := start(t, r, some[0], named, hybrid.WithLocalShare(0.5))
		r.Delay(time.Millisecond)
		begun := time.Now()
		var all sync.WaitGroup
		for i := range 12 {
			seed := rnd.Uint64()
			all.Go(func() {
				rnd := rand.New(rand.NewPCG(seed, 4))
				for time.Since(begun) < time.Second {
					switch key := fmt.Sprint("k", rnd.IntN(5)); {
					case i < 3:
						if err := lim.SetLimit(some[rnd.IntN(len(some))]); err != nil {
							t.Error(err)
						}
					case i < 6:
						_, err := lim.WaitN(t.Context(), key, 1+rnd.IntN(3))
						if err != nil && !errors.Is(err, hybrid.ErrExceedsBurst) {
							t.Error(err)
						}
					case i == 6:
						_ = lim.Reset(t.Context(), key)
					case i == 7:
						_, _ = lim.Peek(t.Context(), key)
						_ = lim.Stats()
					default:
						if _, err := lim.AllowN(t.Context(), key, 1+rnd.IntN(3)); err != nil && !errors.Is(err, hybrid.ErrExceedsBurst) {
							t.Error(err)
						}
					}
					time.Sleep(time.Duration(rnd.Int64N(int64(20 * time.Millisecond))))
				}
			})
		}
		// Those who wait are served or end, once a limit is set that nobody changes.
		time.Sleep(1100 * time.Millisecond)
		last := hybrid.PerSecond(100)
		setLimit(t, 1, last, lim)
		all.Wait()
		for i := range 5 {
			want(t, "limit of a key", allowN(t, lim, fmt.Sprint("k", i), 0).Limit, last)
			time.Sleep(time.Second)
			want(t, "decided under it", allowN(t, lim, fmt.Sprint("k", i), 1).Limit, last)
		}
		want(t, "breaker", lim.Stats().Breaker, "closed")
		want(t, "waiting", lim.Stats().Waiting, 0)
	})
}

func TestSetLimitWhileTheLimiterIsClosed(t *testing.T) {
	seeded(t, runs(5, 200), func(t *testing.T, r *redistest.Mini, rnd *rand.Rand) {
		lim := start(t, r, hybrid.PerSecond(1000), named)
		heat(t, lim)
		r.Delay(time.Duration(rnd.Int64N(int64(10 * time.Millisecond))))
		var all sync.WaitGroup
		for i := range 6 {
			seed := rnd.Uint64()
			all.Go(func() {
				rnd := rand.New(rand.NewPCG(seed, 5))
				for {
					var err error
					if i < 2 {
						err = lim.SetLimit([]hybrid.Limit{hybrid.PerSecond(1000), hybrid.PerSecond(10), hybrid.Blocked, hybrid.Unlimited}[rnd.IntN(4)])
					} else if _, err = lim.WaitN(t.Context(), "k", 1+rnd.IntN(10)); errors.Is(err, hybrid.ErrExceedsBurst) {
						err = nil
					}
					if errors.Is(err, hybrid.ErrClosed) {
						return
					}
					if err != nil {
						t.Error(err)
					}
					time.Sleep(time.Duration(rnd.Int64N(int64(2 * time.Millisecond))))
				}
			})
		}
		time.Sleep(20*time.Millisecond + time.Duration(rnd.Int64N(int64(5*time.Millisecond))))
		took := took(func() {
			if err := lim.Close(); err != nil {
				t.Error(err)
			}
		})
		if took > hybrid.DefaultRemoteTimeout+50*time.Millisecond {
			t.Errorf("Close took %v", took)
		}
		all.Wait()
		settle()
		s := lim.Stats()
		want(t, "tokens granted", s.TokensGranted, s.TokensSpent+s.TokensReturned+s.TokensExpired)
	})
}
