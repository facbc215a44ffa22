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

// halfLife is how fast a demand of so many calls per second is forgotten: six of
// them take that long, but for the shortest and the longest.
func halfLife(callsPerSecond float64) time.Duration {
	calls := time.Duration(local.CallsPerHalfLife / callsPerSecond * 1e9)
	return min(max(calls, local.HalfLife), local.LongestHalfLife)
}

// known is what the averages are divided by: the part of them that rests on what was
// seen, and not on the silence before it, or three tenths.
func known(unknown float64) float64 { return math.Max(0.3, 1-unknown) }

// An even stream of 1,000 tokens per second is found at every spacing, and what is
// missing of it halves with each half-life.
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
		// Of the first call, which took no time, a part of what follows is judged.
		missing, unknown := rate-math.Ln2/local.HalfLife.Seconds(), 1.0
		var now, seen int64
		for now < 20*second {
			dt := c.next()
			now += dt * ms
			// Six calls are too few to tell how rare they are. After that the pace is the
			// one known before or, if it is higher, that of all but three of those noted now.
			half := local.HalfLife
			if seen += dt; seen >= local.CallsPerHalfLife { // and the one of the beginning
				half = halfLife(max(rate-missing, float64(dt-3)/float64(dt)*1000))
			}
			left := math.Exp2(-float64(dt*ms) / float64(half))
			missing, unknown = missing*left, unknown*left
			d.Add(now, rate*dt/1000, dt)
			if got, want := d.PerSecond(), (rate-missing)/known(unknown); !about(got, want) {
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

// A demand that ended halves in 250 ms while it was one of many calls, and the more
// slowly the rarer they become: six calls long, and 5 s at most.
func TestDemandHalvesInAHalfLife(t *testing.T) {
	var d local.Demand
	d.Add(0, 0, 0)
	d.Add(20*second, 20*102_400, 20*1024)
	now := 20 * second
	calls := 1024.0
	for _, half := range []time.Duration{
		250 * time.Millisecond, 250 * time.Millisecond, 250 * time.Millisecond, 250 * time.Millisecond, 250 * time.Millisecond, // down to 32
		250 * time.Millisecond, 375 * time.Millisecond, 750 * time.Millisecond, 1500 * time.Millisecond, 3 * time.Second, // from 16 down to 1
		5 * time.Second, 5 * time.Second, 5 * time.Second, 5 * time.Second,
	} {
		now += int64(half)
		calls /= 2
		d.Add(now, 0, 0)
		if got := d.PerSecond(); math.Abs(got-100*calls) > 1e-9*got {
			t.Fatalf("after %v more %v is left, want %v", half, got, 100*calls)
		}
	}
	if got := d.Size(); !about(got, 100) {
		t.Errorf("calls of 100 tokens have the size %v", got)
	}
}

// steady is the demand of so many calls per second, one at a time, for two minutes.
func steady(perSecond int64) (d local.Demand, now int64) {
	for i := range 120 * perSecond {
		now = i * second / perSecond
		d.Add(now, 1, 1)
	}
	return d, now
}

func TestDemandOfRareCallsIsNotDoubledByChance(t *testing.T) {
	d, now := steady(2) // a half-life of 3 s
	before := d.PerSecond()
	if math.Abs(before-2) > 0.25 {
		t.Fatalf("two calls per second are a demand of %v", before)
	}
	d.Add(now, 2, 2) // with the one before: three at once
	if got, want := d.PerSecond(), before+2*math.Ln2*before/local.CallsPerHalfLife; !about(got, want) {
		t.Errorf("three calls at once make a demand of %v from %v, want %v", got, before, want)
	}
}

func TestDemandThatBecomesLargeIsSeenAtOnce(t *testing.T) {
	for _, c := range []struct {
		calls int64 // within a tenth of a second
		pace  float64
	}{
		{2, 2}, {3, 2}, {4, 10}, {5, 20}, {6, 30}, {100, 970},
	} {
		d, now := steady(2)
		before := d.PerSecond()
		d.Add(now+100*ms, c.calls, c.calls)
		pace := c.pace
		if pace == 2 {
			pace = before
		}
		left := math.Exp2(-0.1 / halfLife(pace).Seconds())
		want := before*left + float64(c.calls)*10*(1-left)
		if got := d.PerSecond(); math.Abs(got-want) > 1e-7*want {
			t.Errorf("%d calls in 100 ms make a demand of %v from %v, want %v", c.calls, got, before, want)
		}
	}
}

func TestDemandOfTheFirstCallsIsSeenAtOnce(t *testing.T) {
	var d local.Demand
	sum, unknown := 0.0, 1.0
	for i := int64(1); i <= 6; i++ {
		left, weight := 0.5, 0.5/0.25
		if i == 1 { // nothing passed before it
			left, weight = 1, math.Ln2/0.25
		}
		d.Add(i*250*ms, 1, 1)
		sum, unknown = sum*left+weight, unknown*left
		if want := sum / known(unknown); !about(d.PerSecond(), want) {
			t.Fatalf("call %d of four per second: a demand of %v, want %v", i, d.PerSecond(), want)
		}
	}
	d.Add(7*250*ms, 1, 1) // enough are known
	left := math.Exp2(-0.25 / halfLife(sum).Seconds())
	sum, unknown = sum*left+4*(1-left), unknown*left
	if want := sum / known(unknown); !about(d.PerSecond(), want) {
		t.Errorf("after seven calls: a demand of %v, want %v", d.PerSecond(), want)
	}
}

// Who begins under an even load knows its demand after the first half of a half-life:
// the silence before it is no demand of zero.
func TestDemandOfANewcomerIsItsDemand(t *testing.T) {
	var d local.Demand
	d.Add(0, 0, 0)
	for i := int64(1); i <= 10; i++ {
		d.Add(i*50*ms, 5, 5)
		want := 100 * math.Min(1, (1-math.Exp2(-float64(i)/5))/0.3)
		if got := d.PerSecond(); !about(got, want) {
			t.Errorf("after %d ms a demand of 100 is %v, want %v", 50*i, got, want)
		}
		if got, want := d.Horizon(0, time.Minute, 8), time.Duration(8/want*1e9); (got - want).Abs() > 1 {
			t.Errorf("after %d ms the horizon is %v, want %v", 50*i, got, want)
		}
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
	// Half of it is left, of five half-lives rather than four.
	if got, want := d.PerSecond(), before/2*(15.0/16)/(31.0/32); !about(got, want) {
		t.Errorf("a half-life after the latest instant %v is left of %v, want %v", got, before, want)
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
		for i := int64(1); i <= 200; i++ {
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
