package local_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/resilient-go/limiter/local"
)

// Many take while the owner earns, reports, is granted and gives back: each token
// that was granted or earned is spent, returned or lost once.
func TestMeteredLeaseConservesTokensUnderManyGoroutines(t *testing.T) {
	var (
		l                    local.Lease
		clock, taken         atomic.Int64
		over                 atomic.Bool
		group                sync.WaitGroup
		granted, earned      int64
		late, returned, lost int64
		reported             int64
	)
	for i := range uint64(4) {
		rnd := rand.New(rand.NewPCG(i, 2))
		group.Go(func() {
			for !over.Load() {
				n := 1 + rnd.Int64N(3)
				left, _, ok := l.Take(clock.Load(), n)
				if ok {
					taken.Add(n)
				}
				if left < 0 {
					t.Error("a balance is negative")
				}
			}
		})
	}
	rnd := rand.New(rand.NewPCG(7, 7))
	rounds := many(20_000, 1_000_000)
	for i := 0; i < rounds || taken.Load() < 100; i++ {
		now := clock.Add(rnd.Int64N(3 * ms))
		switch rnd.IntN(6) {
		case 0:
			if l.TakeLate(now, 1) {
				late++
			}
		case 1:
			l.Meter(3, now)
		case 2:
			held, _, spent, gone := l.Remove(now)
			returned, reported, lost = returned+held, reported+spent, lost+gone
		default:
			kept, spent, gone := l.Report(now)
			reported, lost = reported+spent, lost+gone
			if rnd.IntN(5) == 0 {
				continue // the answer is lost
			}
			back := clock.Add(rnd.Int64N(ms))
			more := rnd.Int64N(4)
			l.Grant(kept, kept+more, now+10*ms, now+20*ms, 2)
			l.Metered(rnd.Int64N(5000*micro), micro+rnd.Int64N(20*micro), now, back)
			granted += more
		}
		if b := l.Balance(clock.Load()); b < 0 {
			t.Fatal("the balance is negative")
		}
		earned += l.Earned()
	}
	over.Store(true)
	group.Wait()
	held, _, spent, gone := l.Remove(clock.Load())
	returned, reported, lost = returned+held, reported+spent, lost+gone
	earned += l.Earned()
	if all := taken.Load() + late; reported != all {
		t.Errorf("%d were spent, %d reported", all, reported)
	}
	if sum := taken.Load() + late + returned + lost; sum != granted+earned {
		t.Errorf("granted %d and earned %d; spent, returned and lost are %d", granted, earned, sum)
	}
	if late == 0 || returned == 0 || lost == 0 || earned == 0 {
		t.Errorf("late %d, returned %d, lost %d, earned %d: the storm did not exercise the lease", late, returned, lost, earned)
	}
}
