package local_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/resilient-go/limiter/local"
)

// A storm is a lease under many goroutines: some only take, some take under the
// lock, and one leads the lease through its life.
type storm struct {
	lease local.Lease
	clock atomic.Int64
	ended atomic.Bool
	taken atomic.Int64
	calls atomic.Int64
	phase atomic.Pointer[phase]
	group sync.WaitGroup
	bad   atomic.Pointer[string]

	mu       sync.Mutex // the key's lock
	granted  int64
	reported int64 // as spent
	returned int64
	lost     int64
}

// A phase is a time during which the lease does not change but for its balance.
type phase struct {
	opens, end int64
	shut       bool
}

func (s *storm) fail(why string) { s.bad.CompareAndSwap(nil, &why) }

// take is what anybody does.
func (s *storm) take(rnd *rand.Rand) {
	before := s.phase.Load()
	now := s.clock.Load()
	n := 1 + rnd.Int64N(3)
	left, _, ok := s.lease.Take(now, n)
	if !ok {
		return
	}
	s.taken.Add(n)
	s.calls.Add(1)
	if left < 0 {
		s.fail("a balance is negative")
	}
	if before == nil || s.phase.Load() != before {
		return // something changed meanwhile: all may be right
	}
	if before.shut {
		s.fail("somebody passed a shut gate without the lock")
	}
	if now >= before.opens {
		s.fail("somebody took without the lock when it was the holder's time")
	}
}

// takeLate is what somebody with the lock does.
func (s *storm) takeLate(rnd *rand.Rand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, now, n := s.phase.Load(), s.clock.Load(), 1+rnd.Int64N(3)
	if !s.lease.TakeLate(now, n) {
		return
	}
	s.taken.Add(n)
	s.calls.Add(1)
	if p != nil && now >= p.end {
		s.fail("tokens were spent after the end")
	}
}

// lead makes one change. While it does, there is no phase.
func (s *storm) lead(rnd *rand.Rand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.phase.Load()
	if p == nil {
		p = &phase{}
	}
	next := *p
	s.phase.Store(nil)
	now := s.clock.Add(rnd.Int64N(20))
	if balance := s.lease.Balance(now); balance < 0 {
		s.fail("the balance is negative")
	}
	switch rnd.IntN(8) {
	case 0:
		held, spent, lost := remove(&s.lease, now)
		s.returned, s.reported, s.lost = s.returned+held, s.reported+spent, s.lost+lost
		next.opens, next.end = 0, 0
	case 1:
		next.shut = !next.shut
		s.lease.Shut(next.shut)
	case 2:
		s.lease.Quiet()
	default:
		kept, spent, lost := s.lease.Report(now)
		s.reported, s.lost = s.reported+spent, s.lost+lost
		s.mu.Unlock() // the message is on its way
		for range rnd.IntN(3) {
			s.takeLate(rnd)
		}
		s.mu.Lock()
		lump := rnd.Int64N(50)
		next.opens = s.clock.Load() + rnd.Int64N(50)
		next.end = next.opens + rnd.Int64N(50)
		s.lease.Grant(kept, kept+lump, next.opens, next.end, rnd.Int64N(10))
		s.granted += lump
	}
	s.phase.Store(&next)
}

func TestLeaseConservesTokensUnderManyGoroutines(t *testing.T) {
	var s storm
	run := func(seed uint64, step func(*rand.Rand)) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		s.group.Go(func() {
			for !s.ended.Load() {
				step(rnd)
			}
		})
	}
	for i := range uint64(6) {
		run(i, s.take)
	}
	run(100, s.takeLate)
	run(101, s.takeLate)
	rnd := rand.New(rand.NewPCG(200, 1))
	for range many(20_000, 1_000_000) {
		s.lead(rnd)
	}
	s.ended.Store(true)
	s.group.Wait()
	held, spent, lost := remove(&s.lease, s.clock.Load())
	s.returned, s.reported, s.lost = s.returned+held, s.reported+spent, s.lost+lost

	if why := s.bad.Load(); why != nil {
		t.Error(*why)
	}
	taken := s.taken.Load()
	if got, want := s.lease.Calls(), s.calls.Load(); got != want {
		t.Errorf("%d calls were counted, want %d", got, want)
	}
	if s.reported != taken {
		t.Errorf("%d tokens were spent, %d reported", taken, s.reported)
	}
	if sum := taken + s.returned + s.lost; sum != s.granted {
		t.Errorf("granted %d, spent %d + returned %d + lost %d = %d", s.granted, taken, s.returned, s.lost, sum)
	}
	if taken == 0 || s.returned == 0 || s.lost == 0 {
		t.Errorf("spent %d, returned %d, lost %d: the storm did not exercise the lease", taken, s.returned, s.lost)
	}
}

// A lease that is emptied while others take gives each token to one of them.
func TestLeaseIsEmptiedWhileOthersTake(t *testing.T) {
	for name, empty := range map[string]func(*local.Lease) int64{
		"removed": func(l *local.Lease) int64 { held, _, _ := remove(l, 0); return held },
		"ended":   func(l *local.Lease) int64 { _, _, lost := l.Report(2); return lost },
	} {
		t.Run(name, func(t *testing.T) {
			const lump = 3
			var (
				l     local.Lease
				over  atomic.Bool
				taken atomic.Int64
				group sync.WaitGroup
				left  int64
			)
			for range 3 {
				group.Go(func() {
					for !over.Load() {
						if _, _, ok := l.Take(0, 1); ok {
							taken.Add(1)
						}
					}
				})
			}
			rounds, least := int64(0), int64(many(200_000, 10_000_000))
			for rounds < least || taken.Load() < 100 {
				rounds++
				l.Grant(0, lump, 1, 2, 0)
				if rounds > least {
					runtime.Gosched() // others have been slow to start
				}
				left += empty(&l)
			}
			over.Store(true)
			group.Wait()
			if sum := taken.Load() + left; sum != lump*rounds {
				t.Errorf("of %d tokens %d were taken and %d left", lump*rounds, taken.Load(), left)
			}
		})
	}
}
