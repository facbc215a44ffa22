package sim_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/sim"
)

// Who waits for all that the bucket can hold is served although others hold
// leases, if the limit is not used up: when the leases have ended, plus the time
// that the tokens take.
func TestAWaitForTheWholeBurstEnds(t *testing.T) {
	for _, limit := range []hybrid.Limit{hybrid.PerSecond(1000), hybrid.PerSecond(1000).WithBurst(200), hybrid.PerSecond(400)} {
		for _, part := range []float64{0.25, 1} {
			t.Run(fmt.Sprintf("%v of %v", part, limit), func(t *testing.T) {
				t.Parallel()
				seeds(t, 3, func(t *testing.T, seed uint64) {
					s := thousand()
					s.Limit, s.Load, s.Seed, s.Duration = limit, 0.5, seed, 15*time.Second
					n := int(part * float64(limit.Burst()))
					s.Waits = []sim.Wait{{At: 5 * time.Second, Instance: 3, N: n}}
					r := play(t, s)
					took := r.Waited[0]
					t.Logf("%v", took)
					// What the others go on taking meanwhile is due as well.
					within := lease + time.Duration(math.Ceil(float64(n)/perSecond(limit)*1e9))
					if took < 0 || took > within {
						t.Errorf("%d tokens took %v: want at most %v", n, took, within)
					}
				})
			})
		}
	}
}
