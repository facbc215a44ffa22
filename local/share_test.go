package local_test

import (
	"math"
	"testing"
	"time"

	"github.com/resilient-go/limiter/local"
)

func TestShareStartsFullAndRefillsToItsBurst(t *testing.T) {
	s := local.NewShare(10, 5, 0)
	if got := s.Level(); got != 5 {
		t.Fatalf("a new share has %d tokens, want 5", got)
	}
	for i := range 5 {
		if !s.Take(1) {
			t.Fatalf("token %d of 5 was refused", i+1)
		}
	}
	if s.Take(1) {
		t.Fatal("a sixth token was had at once")
	}
	s.Advance(100*ms - 1)
	if s.Take(1) {
		t.Fatal("a token was had a nanosecond early")
	}
	s.Advance(100 * ms)
	if !s.Take(1) {
		t.Fatal("the token of 100 ms was refused when it was due")
	}
	s.Advance(day)
	if got := s.Level(); got != 5 {
		t.Errorf("after a day there are %d tokens, want the burst of 5", got)
	}
}

func TestShareOfAFractionalBurst(t *testing.T) {
	s := local.NewShare(2.5, 2.5, 0) // a quarter of 10 per second
	if !s.Take(2) || s.Take(1) {
		t.Fatal("2.5 tokens must give 2 and not 3")
	}
	if got, want := s.RetryAfter(1, 0), 200*time.Millisecond; got != want {
		t.Errorf("half a token takes %v, want %v", got, want)
	}
	s.Advance(800 * ms)
	if s.Level() != 2 || !s.Full() {
		t.Errorf("after 800 ms the level is %d, full: %v; want 2, true", s.Level(), s.Full())
	}
}

func TestShareTakeOfNothingOrLess(t *testing.T) {
	s := local.NewShare(10, 5, 0)
	if !s.Take(0) {
		t.Error("no tokens cannot be had")
	}
	if s.Take(-100) {
		t.Error("a negative number of tokens was charged")
	}
	if got := s.Level(); got != 5 {
		t.Errorf("the level is %d, want 5", got)
	}
}

func TestShareWhatIsHeldRefillsNothing(t *testing.T) {
	s := local.NewShare(10, 10, 0)
	level := func(step string, want int64) {
		t.Helper()
		if got := s.Level(); got != want {
			t.Fatalf("%s: the level is %d, want %d", step, got, want)
		}
	}
	if !s.Take(4) {
		t.Fatal("4 of 10 were refused")
	}
	s.Hold(4)
	level("granted 4", 6)
	s.Advance(day)
	level("held for a day", 6)
	s.Hold(1)
	level("spent 3 of 4: they refill, they do not come back", 6)
	s.Advance(day + 100*ms)
	level("100 ms later", 7)
	s.Advance(2 * day)
	level("a day later", 9)
	s.Give(5)
	level("given back more than there is room for", 9)
	s.Hold(10)
	level("all rights are held", 0)
	s.Give(3)
	level("given back without room", 0)
	s.Hold(25)
	level("more is held than the burst", 0)
	s.Give(3)
	level("and some given back", 0)
	s.Reset()
	level("and reset", 0)
	s.Hold(4)
	level("and less again", 0)
	s.Reset()
	level("reset", 6)
	s.Hold(0)
	level("nothing is held", 6)
	if s.Full() {
		t.Error("a share of 6 of 10 says that it is full")
	}
}

func TestShareGiveUndoesTake(t *testing.T) {
	s := local.NewShare(10, 10, 0)
	if !s.Take(8) {
		t.Fatal("8 of 10 were refused")
	}
	s.Give(8)
	if got := s.Level(); got != 10 {
		t.Fatalf("after take and give the level is %d, want 10", got)
	}
	if !s.Take(8) {
		t.Fatal("8 of 10 were refused")
	}
	s.Advance(500 * ms) // 5 more
	s.Give(8)
	if got := s.Level(); got != 10 {
		t.Errorf("after a refill the level is %d, want 10: never above the burst", got)
	}
}

func TestShareClockThatGoesBack(t *testing.T) {
	s := local.NewShare(10, 5, second)
	if !s.Take(5) {
		t.Fatal("5 of 5 were refused")
	}
	s.Advance(2 * second)
	if !s.Take(5) {
		t.Fatal("5 were refused after a second at 10 per second")
	}
	for range 100 {
		s.Advance(0)
		s.Advance(2 * second)
	}
	if got := s.Level(); got != 0 {
		t.Errorf("a clock that went back and forth made %d tokens", got)
	}
}

func TestShareRetryAfterIsExact(t *testing.T) {
	year := 366 * 24 * time.Hour
	for _, c := range []struct {
		name             string
		perSecond, burst float64
		taken, n         int64
		want             time.Duration
	}{
		{"one of 5 per minute", 5.0 / 60, 5, 5, 1, 12 * time.Second},
		{"all of 5 per minute", 5.0 / 60, 5, 5, 5, time.Minute},
		{"one of 7 per 3 seconds, rounded up", 7.0 / 3, 7, 7, 1, 428571429},
		{"one of 3 per second, rounded up", 3, 3, 3, 1, 333333334},
		{"1 per 366 days", 1 / year.Seconds(), 1, 1, 1, year},
		{"142 of 142 per 366 days each", 1 / year.Seconds(), 142, 142, 142, 142 * year},
		{"one of a billion per second", 1e9, 1e9, 1e9, 1, 1},
		{"a billion of a billion per second", 1e9, 1e9, 1e9, 1e9, time.Second},
		{"one of four billion at 1 per second", 1, 4e9, 4e9, 1, time.Second},
		{"what is there already", 10, 10, 5, 5, 1},
		{"ages", 1e-12, 1, 1, 1, math.MaxInt64 / 2},
	} {
		s := local.NewShare(c.perSecond, c.burst, 0)
		if !s.Take(c.taken) {
			t.Fatalf("%s: %d of %v were refused", c.name, c.taken, c.burst)
		}
		// A float64 of a year in nanoseconds is a multiple of 4.
		if got := s.RetryAfter(c.n, 0); (got - c.want).Abs() > c.want>>52 {
			t.Errorf("%s: RetryAfter is %d ns, want %d", c.name, got, c.want)
		}
	}
}

// A bucket that is asked all the time must neither lose what a moment credits
// by rounding it away, nor gain by rounding it up.
func TestShareAskedEveryNanosecondOfASlowRate(t *testing.T) {
	const burst = 1 << 20
	for _, perSecond := range []float64{1.0 / 3600, 0.2, 1, 3} {
		s := local.NewShare(perSecond, burst, 0)
		if !s.Take(2) {
			t.Fatal("2 of a million were refused")
		}
		due := int64(s.RetryAfter(burst-1, 0))
		near := due - 50_000
		for now := int64(0); now < due; now += due / 50_000 {
			s.Advance(min(now, near))
			if s.Level() != burst-2 {
				t.Fatalf("%v per second: the token came by %v, %v early", perSecond, time.Duration(now), time.Duration(due-now))
			}
		}
		hair := int64(burst * 0x1p-48 / perSecond * 1e9) // rounding, at this level
		for now := near; now < due; now++ {
			s.Advance(now)
			if s.Level() != burst-2 && now < due-hair {
				t.Fatalf("%v per second: the token came %v early", perSecond, time.Duration(due-now))
			}
		}
		s.Advance(due)
		if s.Level() != burst-1 {
			t.Errorf("%v per second: the token has not come by %v", perSecond, time.Duration(due))
		}
	}
}

// Nor must it become less exact the more it has given.
func TestShareStaysExactForEver(t *testing.T) {
	s := local.NewShare(1.0/3, 1000, 0)
	var now, taken int64
	for range 2_000_000 {
		now += 2700 * second
		s.Advance(now)
		n := s.Level()
		if !s.Take(n) {
			t.Fatalf("%d of %d were refused", n, n)
		}
		taken += n
	}
	if want := now / second / 3; taken < want || taken > want+1000 {
		t.Errorf("taken %d, want %d and up to 1000", taken, want)
	}
	for range 100 {
		d := int64(s.RetryAfter(1, 0))
		s.Advance(now + d - 1)
		if s.Take(1) {
			t.Fatalf("a token was had a nanosecond before its %d ns", d)
		}
		now += d
		s.Advance(now)
		if !s.Take(1) {
			t.Fatalf("a token was refused after its %d ns", d)
		}
	}
}
