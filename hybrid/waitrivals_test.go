package hybrid_test

import (
	"sync"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// Who waits beside rivals for much, and has somebody behind who needs little, asks
// when its own tokens are due, not when the little ones were.
func TestWhoWaitsForMuchAsksWhenMuchIsDue(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		limit := hybrid.PerSecond(5).WithBurst(8)
		lim, other := start(t, r, limit), start(t, r, limit)
		want(t, "the first", allow(t, lim).Allowed, true)
		want(t, "a rival's", allowN(t, other, "k", 7).Allowed, true)
		want(t, "what a rival has taken", allow(t, lim).Source, hybrid.SourceRedis)
		time.Sleep(600 * time.Millisecond) // three tokens
		r.Delay(time.Millisecond)
		before := r.Counts().Runs
		var waiting sync.WaitGroup
		for _, n := range []int{5, 1} {
			waiting.Go(func() {
				if res, err := lim.WaitN(t.Context(), "k", n); err != nil || !res.Allowed {
					t.Errorf("%+v, %v", res, err)
				}
			})
			time.Sleep(time.Microsecond) // in this order
		}
		waiting.Wait()
		// The first alone, both when five are due, the second when one more is.
		want(t, "calls", r.Counts().Runs-before, 3)
	})
}
