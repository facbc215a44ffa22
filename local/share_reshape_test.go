package local_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/resilient-go/limiter/local"
)

func TestShareReshapedUpKeepsItsTokens(t *testing.T) {
	s := local.NewShare(10, 5, 0)
	s.Take(5)
	s.Advance(300 * ms)
	s.Reshape(100, 50)
	if got := s.Level(); got != 3 {
		t.Fatalf("3 tokens became %d", got)
	}
	if got, want := s.RetryAfter(10, 0), 70*time.Millisecond; got != want {
		t.Errorf("seven more take %v, want %v", got, want)
	}
	s.Advance(370*ms - 1)
	if s.Level() != 9 {
		t.Errorf("a nanosecond early there are %d tokens, want 9", s.Level())
	}
	s.Advance(370 * ms)
	if s.Level() != 10 {
		t.Errorf("then there are %d tokens, want 10", s.Level())
	}
	s.Advance(day)
	if s.Level() != 50 || !s.Full() {
		t.Errorf("after a day there are %d tokens, full: %v; want 50, true", s.Level(), s.Full())
	}
}

func TestShareReshapedDownIsCutToItsBurst(t *testing.T) {
	s := local.NewShare(100, 50, 0)
	s.Reshape(10, 5)
	if s.Level() != 5 || !s.Full() || s.Take(6) || !s.Take(5) {
		t.Fatal("a burst of 5 must give 5 and not 6")
	}
	s.Advance(100*ms - 1)
	if s.Take(1) {
		t.Error("a token was had a nanosecond early")
	}
	s.Advance(100 * ms)
	if !s.Take(1) {
		t.Error("a token of ten per second was not had after 100 ms")
	}
	s.Reshape(100, 50) // down and up again mints nothing
	if s.Level() != 0 {
		t.Errorf("there are %d tokens after the way back, want none", s.Level())
	}
}

func TestShareReshapedWhileTokensAreHeld(t *testing.T) {
	s := local.NewShare(100, 50, 0)
	s.Take(30)
	s.Hold(30)
	s.Reshape(10, 40)
	if s.Level() != 10 {
		t.Errorf("beside 30 held there are %d tokens of 40, want 10", s.Level())
	}
	s.Reshape(10, 20)
	if s.Level() != 0 {
		t.Errorf("beside 30 held there are %d tokens of 20, want none", s.Level())
	}
	s.Advance(day)
	if s.Level() != 0 {
		t.Errorf("a day later there are %d, want none", s.Level())
	}
	s.Hold(0)
	s.Advance(day + second)
	if s.Level() != 10 {
		t.Errorf("a second after nothing is held there are %d, want 10", s.Level())
	}
}

// However it is reshaped, what is taken is what it began with and what the rates
// were worth, and level and held stay within the burst.
func TestShareReshapedAtAnyTimeMintsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := func() (perSecond, burst float64) {
			return float64(rapid.Int64Range(1, 2000).Draw(t, "rate")) / 4, float64(rapid.Int64Range(4, 400).Draw(t, "burst")) / 4
		}
		perSecond, burst := shape()
		s := local.NewShare(perSecond, burst, 0)
		budget, taken, now := burst, 0.0, int64(0)
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			us := rapid.Int64Range(0, 200_000).Draw(t, "us")
			now += us * 1000
			budget += float64(us) / 1e6 * perSecond
			s.Advance(now)
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				before := s.Level()
				perSecond, burst = shape()
				s.Reshape(perSecond, burst)
				if got, want := s.Level(), min(before, int64(burst)); got > want {
					t.Fatalf("%d tokens became %d under a burst of %v", before, got, burst)
				}
			default:
				n := rapid.Int64Range(1, 20).Draw(t, "n")
				if had := s.Level(); s.Take(n) != (n <= had) {
					t.Fatalf("%d of %d", n, had)
				} else if n <= had {
					taken += float64(n)
				}
			}
			if taken > budget+1e-6 || float64(s.Level()) > burst {
				t.Fatalf("%v taken of %v, a level of %d of %v", taken, budget, s.Level(), math.Floor(burst))
			}
		}
	})
}
