package hybrid_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// clientsAndReturns are clients, how soon after Redis is back it decides again, and how
// many dials a second there may be meanwhile: go-redis' own four attempts, by default,
// multiply those of the probes.
var clientsAndReturns = []struct {
	name   string
	client func(*redis.Options)
	soon   time.Duration
	dials  int
}{
	{"recommended options", advised, 1200 * time.Millisecond, 4},
	{"defaults", func(*redis.Options) {}, 2500 * time.Millisecond, 8},
}

// However Redis went and however long it was gone, it decides again soon after it is
// back, and meanwhile hardly anybody dials.
func TestRedisDecidesAgainSoon(t *testing.T) {
	for _, c := range clientsAndReturns {
		for name, cut := range map[string]func(*redistest.Mini) (mend func()){
			"dead":    func(r *redistest.Mini) func() { r.Kill(); return r.RestartWithData },
			"frozen":  func(r *redistest.Mini) func() { r.Freeze(); return r.Thaw },
			"cut off": func(r *redistest.Mini) func() { r.Partition(); return r.Heal },
			"loading": func(r *redistest.Mini) func() {
				r.FailWith("LOADING Redis is loading the dataset in memory")
				return r.Heal
			},
			"too slow": func(r *redistest.Mini) func() { r.Delay(200 * time.Millisecond); return r.Heal },
		} {
			for _, long := range []time.Duration{600 * time.Millisecond, 3 * time.Second, 20 * time.Second} {
				t.Run(fmt.Sprint(c.name, "/", name, "/", long), func(t *testing.T) {
					bubble(t, func(t *testing.T, r *redistest.Mini) {
						lim := startOn(t, r.Client(c.client), hybrid.PerSecond(1000), hybrid.WithExpectedInstances(2))
						warm(t, lim)
						mend := cut(r)
						dials := r.Counts().Dials
						key := 0
						ask := func() hybrid.Source { // of many keys, so that leases do not hide anything
							key++
							return allowN(t, lim, fmt.Sprint("key ", key%50), 1).Source
						}
						for begun := time.Now(); time.Since(begun) < long; time.Sleep(5 * time.Millisecond) {
							ask()
						}
						want(t, "degraded", lim.Stats().Degraded, true)
						if n, most := r.Counts().Dials-dials, 12+int(float64(c.dials)*long.Seconds()); n > most {
							t.Errorf("%d dials in %v, want %d at most", n, long, most)
						}
						mend()
						back := time.Now()
						for ask() != hybrid.SourceRedis {
							if time.Since(back) > 10*time.Second {
								t.Fatal("Redis does not decide again")
							}
							time.Sleep(time.Millisecond)
						}
						if d := time.Since(back); d > c.soon {
							t.Errorf("Redis decides again after %v, want %v at most", d, c.soon)
						}
					})
				})
			}
		}
	}
}

// A Redis that is well and has only been restarted has broken all connections of the
// pool, and has forgotten the scripts. That is no outage.
func TestARestartOfAMomentIsNoOutage(t *testing.T) {
	for _, c := range clientsAndReturns {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			lim := startOn(t, r.Client(c.client), hybrid.PerSecond(1000), hybrid.WithExpectedInstances(2))
			warm(t, lim)
			for round := range 20 {
				for k := range 30 { // connections for all of them
					go func() { _, _ = lim.Allow(t.Context(), fmt.Sprint(round, " ", k)) }()
				}
				time.Sleep(time.Second)
				r.Kill()
				r.RestartWithData()
				time.Sleep(100 * time.Millisecond)
				for k := range 10 {
					allowN(t, lim, fmt.Sprint("after ", round, " ", k), 1)
				}
				want(t, c.name+": degraded for", lim.Stats().DegradedFor, 0)
			}
		})
	}
}
