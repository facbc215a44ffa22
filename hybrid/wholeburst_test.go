package hybrid_test

import (
	"math/bits"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// An instance that is alone at a key gets the whole burst, to the last token, however
// much of it leases have already brought, and for few calls: a part of what is left
// comes with each.
func TestOneInstanceAloneGetsTheWholeBurst(t *testing.T) {
	for _, c := range []struct{ perSecond, burst int }{
		{1, 1},
		{2, 3},
		{5, 5},
		{10, 8},
		{12, 12},
		{16, 16},
		{20, 20},
		{33, 30},
		{50, 50},
		{50, 500},
		{100, 100},
		{100, 10},
		{1000, 1000},
		{5000, 5000},
		{5000, 50},
	} {
		for _, size := range []int{1, 3} {
			if c.burst < size {
				continue
			}
			bubble(t, func(t *testing.T, r *redistest.Mini) {
				lim := start(t, r, hybrid.PerSecond(c.perSecond).WithBurst(c.burst))
				warm(t, lim)
				for round := range 3 {
					calls, got := r.Counts().Runs, 0
					for allowN(t, lim, "k", size).Allowed {
						got += size
					}
					least := c.burst // some may lie here and some at the root, neither enough for one more
					if size > 1 {
						least -= 2*size - 2
					}
					if got < least || got > c.burst {
						t.Errorf("%d/s burst %d: in round %d %d passed in one moment, %d at a time", c.perSecond, c.burst, round, got, size)
					}
					if n, most := r.Counts().Runs-calls, 10+2*bits.Len(uint(c.burst)); n > most {
						t.Errorf("%d/s burst %d: in round %d %d calls, want %d at most", c.perSecond, c.burst, round, n, most)
					}
					time.Sleep(time.Duration(c.burst)*time.Second/time.Duration(c.perSecond) + 2*time.Second) // all is back
				}
			})
		}
	}
}
