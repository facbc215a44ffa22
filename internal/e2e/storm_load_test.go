package e2e

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// The load of a storm goes in cycles of phases. In the first ones a few busy
// workers want half of the limit, so that the root is full and there is much on
// lease; then all workers rush to one front; and then anything goes, from nothing to four
// times the limit, divided unevenly.
const (
	phase = 800 * time.Millisecond
	cycle = 5 // phases
	rush  = 3 // the number of the phase in its cycle
	few   = 3
)

// busy are the slots of the busy few in a phase.
func busy(seed uint64, number int64) []int {
	rnd := rand.New(rand.NewPCG(seed, uint64(number/cycle)))
	return rnd.Perm(slots)[:few]
}

// demand is the load that a worker makes on a key in a phase, if all slots made
// as much, as a multiple of the limit.
func (o *StormOrder) demand(front, key int, number int64, own *rand.Rand) float64 {
	switch at := number % cycle; {
	case at < rush:
		for _, slot := range busy(o.Seed, number) {
			if slot == o.Slot {
				return 0.5 * slots / few
			}
		}
		return 0.05 // which keeps their connections
	case at == rush && front == int(number/cycle)%2: // one front at a time, or the machine does not keep up
		return 4
	default:
		fleet := rand.New(rand.NewPCG(o.Seed, uint64(number)<<16|uint64(front)<<8|uint64(key)))
		return []float64{0, 0.3, 0.8, 1.2, 2, 4}[fleet.IntN(6)] * 2 * own.Float64()
	}
}

// caller makes the load of one of the callers that a key has in a worker.
func (s *Stormer) caller(front, key, callers int, rnd *rand.Rand) {
	o, f := &s.order, &s.order.Fronts[front]
	limit := s.limits[front]
	name := fmt.Sprint("key", key)
	next, ends, pause := max(o.Begun, stamp()), int64(0), 0.0
	for {
		if next >= ends {
			number := (next - o.Begun) / int64(phase)
			ends = o.Begun + (number+1)*int64(phase)
			perSecond := o.demand(front, key, number, rnd) * float64(limit.Count()) / limit.Period().Seconds()
			pause = 1e9 / perSecond * float64(callers*slots) * float64(1+f.Most) / 2
		}
		gap := pause * rnd.ExpFloat64()
		wakes := gap < float64(ends-next)
		if wakes {
			next += int64(gap)
		} else {
			next = ends
		}
		next = max(next, stamp()-int64(phase/10)) // who stood still does not catch up
		select {
		case <-until(next):
		case <-s.life.Done():
			return
		}
		if wakes {
			s.request(front, key, name, 1+rnd.IntN(f.Most), rnd)
		}
	}
}
