package local_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/resilient-go/limiter/local"
)

// What a lease earns by itself comes out of the rate, until the lease ends.
func TestShareLendsAPartOfItsRate(t *testing.T) {
	s := local.NewShare(10, 10, 0)
	s.Take(10)
	s.Lend(4e6, second)
	s.Advance(500 * ms)
	if got := s.Level(); got != 3 {
		t.Errorf("after half a second at 10-4 per second there are %d, want 3", got)
	}
	s.Lend(10e6, second)
	s.Advance(900 * ms)
	if got, d := s.Level(), s.RetryAfter(5, 1_500_000); got != 3 || d != 50*time.Millisecond {
		t.Errorf("all of the rate is lent: there are %d, want 3; 5 with 1.5 that are held take %v, want 50ms", got, d)
	}
	s.Advance(1500 * ms)
	if got := s.Level(); got != 8 {
		t.Errorf("half a second after the lease has ended there are %d, want 8", got)
	}
	s.Lend(20e6, 3*second)
	s.Advance(2500 * ms)
	if got, d := s.Level(), s.RetryAfter(1, 0); got > 0 || d != 300*time.Millisecond {
		t.Errorf("more is lent than there is: %d are left, and one takes %v; want none and 300ms", got, d)
	}
	if d := s.PaidIn(); d != 1200*time.Millisecond { // half a second in which it grows by 5, and then 7 at 10 per second
		t.Errorf("a debt of 2 is paid in %v where it grows for half a second, want 1s200ms", d)
	}
	s.Lend(5e6, 3*second)
	if d := s.PaidIn(); d != 400*time.Millisecond {
		t.Errorf("a debt of 2 is paid in %v at 10-5 per second, want 400ms", d)
	}
	s.Lend(0, 0)
	if d := s.PaidIn(); d != 200*time.Millisecond {
		t.Errorf("a debt of 2 is paid in %v, want 200ms", d)
	}
	s.Restore(2_500_000)
	if got := s.Level(); got != 0 || !s.HasWith(2, 1_500_000) || s.HasWith(3, 1_999_999) {
		t.Errorf("2.5 came back of a debt of 2: there are %d, want 0.5", got)
	}
}

// An instance that takes what it can from its share, and from leases that earn parts
// of its rate and are renewed, given back and forgotten, never passes its cap.
func TestShareWithLeasesNeverPassesItsCap(t *testing.T) {
	for range many(2000, 200_000) {
		seed := rand.Uint64()
		rnd := rand.New(rand.NewPCG(seed, 1))
		perSecond, burst := math.Exp(10*rnd.Float64()-3), math.Exp(7*rnd.Float64())
		i := newInstance(perSecond, burst)
		s := &i.share
		var rate, has, most float64 // of the lease, in tokens
		var counted, until int64
		earn := func() {
			if now := min(i.now, until); now > counted {
				has = math.Min(math.Max(has, most), has+rate*float64(now-counted)/1e9)
			}
			counted = i.now
			if i.now >= until {
				rate, has, most = 0, 0, 0
			}
		}
		hold := func() {
			s.Advance(i.now)
			s.Hold(int64(math.Ceil(math.Max(has, most))))
			s.Lend(int64(rate*1e6), until)
		}
		for range 100 {
			i.now += int64(rnd.ExpFloat64() * burst / perSecond * 1e9 / 8)
			earn()
			hold()
			n := int64(0)
			switch rnd.IntN(6) {
			case 0, 1: // somebody takes from the share
				if n = rnd.Int64N(s.Level() + 1); !s.Take(n) {
					t.Fatalf("seed %d: %d were refused of %d", seed, n, s.Level())
				}
			case 2, 3: // or from the lease
				n = rnd.Int64N(int64(has) + 1)
				has -= float64(n)
			case 4: // it is renewed, with some tokens, for a while
				more := rnd.Int64N(s.Level() + 1)
				s.Take(more)
				has += float64(more)
				rate, most = perSecond*rnd.Float64(), (burst-has)*rnd.Float64()
				until = i.now + int64(burst/perSecond*1e9*rnd.Float64())
				hold()
			case 5: // or given back
				back := has
				rate, has, most = 0, 0, 0
				hold()
				s.Restore(int64(back * 1e6))
			}
			if err := i.admit(n); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
	}
}
