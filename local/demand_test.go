package local_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/resilient-go/limiter/local"
)

// about reports whether two numbers agree to a billionth.
func about(got, want float64) bool {
	return math.Abs(got-want) <= 1e-9*math.Max(1, math.Abs(want))
}

// An even stream of 1,000 tokens per second is found at every spacing, and the
// error of the start halves with each half-life.
func TestDemandConvergesWhateverTheSpacing(t *testing.T) {
	const rate = 1000
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name string
		next func() int64 // in milliseconds
	}{
		{"1 ms", func() int64 { return 1 }},
		{"10 ms", func() int64 { return 10 }},
		{"200 ms", func() int64 { return 200 }},
		{"10 s", func() int64 { return 10_000 }},
		{"1 to 50 ms", func() int64 { return 1 + rnd.Int64N(50) }},
		{"1 ms or 3 s", func() int64 { return 1 + 2999*rnd.Int64N(2) }},
	} {
		var d local.Demand
		d.Add(0, 1, 1)
		first := d.PerSecond()
		var now int64
		for now < 20*second {
			dt := c.next()
			now += dt * ms
			d.Add(now, rate*dt/1000, dt)
			want := rate + (first-rate)*math.Exp2(-float64(now)/float64(local.HalfLife))
			if got := d.PerSecond(); !about(got, want) {
				t.Fatalf("every %s: after %v the demand is %v, want %v", c.name, time.Duration(now), got, want)
			}
		}
		if got := d.PerSecond(); !about(got, rate) {
			t.Errorf("every %s: the demand is %v, want %d", c.name, got, rate)
		}
		if got := d.Size(); !about(got, 1) {
			t.Errorf("every %s: the size of a call is %v, want 1", c.name, got)
		}
	}
}

func TestDemandHalvesInAHalfLife(t *testing.T) {
	var d local.Demand
	d.Add(0, 0, 0)
	d.Add(10*second, 10_000, 100)
	before := d.PerSecond()
	for i := range 20 {
		d.Add(10*second+int64(i+1)*int64(local.HalfLife), 0, 0)
		if got, want := d.PerSecond(), before*math.Exp2(-float64(i+1)); math.Abs(got-want) > 1e-12*want {
			t.Fatalf("after %d half-lives %v is left of %v, want %v", i+1, got, before, want)
		}
	}
	if got := d.Size(); !about(got, 100) {
		t.Errorf("calls of 100 tokens have the size %v", got)
	}
}

func TestDemandOfOneInstantIsTheSameInPieces(t *testing.T) {
	var whole, pieces local.Demand
	whole.Add(5*second, 30, 3)
	for range 3 {
		pieces.Add(5*second, 10, 1)
	}
	if !about(pieces.PerSecond(), whole.PerSecond()) {
		t.Errorf("three times 10 at once are %v per second, 30 are %v", pieces.PerSecond(), whole.PerSecond())
	}
	tiny := local.Demand{}
	tiny.Add(5*second-1, 0, 0)
	tiny.Add(5*second, 30, 3)
	if got, want := tiny.PerSecond(), whole.PerSecond(); math.Abs(got-want) > 1e-8*want {
		t.Errorf("30 within a nanosecond are %v per second, 30 at once are %v", got, want)
	}
}

func TestDemandOfAClockThatGoesBack(t *testing.T) {
	var d local.Demand
	d.Add(0, 0, 0)
	d.Add(second, 1000, 1000)
	before := d.PerSecond()
	d.Add(second/2, 0, 0)
	if got := d.PerSecond(); got != before {
		t.Errorf("an earlier instant changed the demand from %v to %v", before, got)
	}
	d.Add(second+int64(local.HalfLife), 0, 0)
	if got := d.PerSecond(); !about(got, before/2) {
		t.Errorf("a half-life after the latest instant %v is left of %v", got, before)
	}
}

func TestDemandThatNobodyHas(t *testing.T) {
	var d local.Demand
	if d.PerSecond() != 0 || d.Size() != 1 || d.Horizon(time.Second, time.Minute, 8) != time.Second {
		t.Errorf("a zero demand is %v of size %v", d.PerSecond(), d.Size())
	}
	d.Add(0, 5, 5)
	d.Add(1<<62, 0, 0)
	if got := d.PerSecond(); got != 0 {
		t.Errorf("after a century the demand is %v", got)
	}
	if got := d.Horizon(200*time.Millisecond, 5*time.Second, 8); got != 200*time.Millisecond {
		t.Errorf("then the horizon is %v, want the base", got)
	}
}

func TestDemandHorizonCoversSoManyCalls(t *testing.T) {
	const base, longest = 200 * time.Millisecond, 5 * time.Second
	for _, c := range []struct {
		perSecond     int64
		base, longest time.Duration
		want          time.Duration
	}{
		{1000, base, longest, base},
		{40, base, longest, base},
		{20, base, longest, 400 * time.Millisecond},
		{4, base, longest, 2 * time.Second},
		{2, base, longest, 4 * time.Second},
		{1, base, longest, longest},
		{1, 10 * time.Second, longest, 10 * time.Second},
	} {
		var d local.Demand
		d.Add(0, 0, 0)
		for i := int64(1); i <= 20; i++ {
			d.Add(i*second, 3*c.perSecond, c.perSecond)
		}
		got := d.Horizon(c.base, c.longest, 8)
		if (got-c.want).Abs() > time.Microsecond || got < c.base {
			t.Errorf("%d calls per second: the horizon is %v, want %v", c.perSecond, got, c.want)
		}
		if !about(d.Size(), 3) {
			t.Errorf("%d calls of 3 per second have the size %v", c.perSecond, d.Size())
		}
	}
}
