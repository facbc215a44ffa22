package hybrid_test

import (
	"sync"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// Who waits behind a large request is due when that one is, not when the root has
// enough for the small one: asked again by the small one's time, Redis would be
// asked without a pause, and the more often, the more rivals there are.
func TestWhoWaitsBehindALargeRequestDoesNotPoll(t *testing.T) {
	for _, rivals := range []int{0, 1, 3} {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			lim, other := start(t, r, hybrid.PerSecond(10)), start(t, r, hybrid.PerSecond(10))
			allow(t, lim)
			for range rivals { // the root is thought to have what another one has taken
				time.Sleep(100 * time.Millisecond)
				drain(t, other, "k")
				want(t, "allowed", allow(t, lim).Allowed, false)
			}
			drain(t, other, "k")
			time.Sleep(450 * time.Millisecond)
			calls := r.Counts().Runs
			var all sync.WaitGroup
			s := newServed()
			for i, n := range []int{8, 1, 2} {
				s.queue(t, &all, lim, i, n)
			}
			time.Sleep(2 * time.Second)
			all.Wait()
			if n := r.Counts().Runs - calls; n > 24 {
				t.Errorf("with %d rivals: %d calls for 3 permits: somebody polls", rivals, n)
			}
		})
	}
}
