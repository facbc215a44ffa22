package hybrid_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// A key whose lease is used up, or ended in an outage, holds nothing: it must not
// keep its place for ever because its local share believes otherwise.
func TestKeyWithALocalShareIsForgottenAfterItsLease(t *testing.T) {
	idle := func(t *testing.T, lim *hybrid.Limiter) {
		t.Helper()
		synctest.Wait()
		time.Sleep(time.Hour)
		for k := range 3 { // the first one finds it in use
			allowN(t, lim, fmt.Sprint(k), 1)
			time.Sleep(time.Minute)
		}
		want(t, "evicted", lim.Stats().Evicted > 0, true)
	}
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(1000), hybrid.WithLocalShare(0.5), hybrid.WithMaxKeys(1))
		every(t, lim, 300, time.Millisecond, func(hybrid.Result) {})
		want(t, "a lease was granted", lim.Stats().Grants > 0, true)
		r.Kill()
		trip(t, lim)
		time.Sleep(10 * time.Second) // the lease ends
		r.RestartEmpty()
		time.Sleep(10 * time.Second)
		want(t, "degraded", lim.Stats().Degraded, false)
		idle(t, lim)
	})
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(10).WithBurst(1000), hybrid.WithLocalShare(0.5), hybrid.WithMaxKeys(1))
		every(t, lim, 2000, time.Millisecond, func(hybrid.Result) {})
		want(t, "a lease was granted", lim.Stats().Grants > 0, true)
		idle(t, lim)
	})
}
