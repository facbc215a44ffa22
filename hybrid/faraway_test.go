package hybrid_test

import (
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// A Redis 20 or 30 ms away is a healthy one: it must learn the script.
func TestDistantRedisLearnsTheScript(t *testing.T) {
	for _, rtt := range []time.Duration{10 * time.Millisecond, 20 * time.Millisecond, 30 * time.Millisecond} {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			lim := start(t, r, hybrid.PerSecond(1000))
			r.Delay(rtt)
			for range 20 {
				allow(t, lim)
				time.Sleep(100 * time.Millisecond)
			}
			if res := allowN(t, lim, "new", 1); res.Source != hybrid.SourceRedis {
				t.Errorf("%v away, after 2 s: %+v", rtt, res)
			}
			time.Sleep(100 * time.Millisecond)
		})
	}
}

// The share caps what one instance admits, also in an outage.
func TestLocalShareHoldsInAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(100), hybrid.WithLocalShare(0.25)) // and one instance assumed
		r.Kill()
		trip(t, lim)
		admitted := new(record)
		for range 1000 {
			if allow(t, lim).Allowed {
				admitted.add(1)
			}
			time.Sleep(time.Millisecond)
		}
		admitted.inBound(t, 25, 25)
	})
}

// A lease that Redis has lost is gone, and counted.
func TestLeaseThatRedisLostIsAccountedFor(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerHour(1).WithBurst(1000))
		every(t, lim, 200, time.Millisecond, func(hybrid.Result) {})
		r.RestartEmpty()
		allowN(t, lim, "k", 990) // more than is held, and more than leaves room for a lump
		time.Sleep(time.Second)
		s := lim.Stats()
		want(t, "granted = spent + returned + expired", s.TokensGranted,
			s.Allowed[hybrid.SourceLease]+s.TokensReturned+s.TokensExpired)
	})
}
