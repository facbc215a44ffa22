package sim

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/resilient-go/limiter/hybrid"
)

// The bound.
//
// Let a root have T tokens, rights O out on lease and leases with rates of p
// together. Each script leaves T + O ≤ B. Between scripts the root gains r - p, up
// to B - O, and the leases gain p, each up to its burst, which is in O. So in a
// window of length w no more can be spent than was there at its beginning, T + O,
// and what is gained in it: B + r·w.
//
// What Redis admits is entered at the instant at which the script charged it, and
// what a lease admits at that at which it was taken. Redis counts whole
// microseconds, which gives a window one more; all else is exact.
//
// The additions, each of them for the windows that overlap the fault and its
// consequences, and no others:
//
//   - A step of the clock of Redis, lost data, older data: see [rootState.given]
//     and [schedule.step]. Never more than B + r·TTL each.
//   - Another limit: while two are in use, the larger rate, and the larger burst. A
//     raise lets those who began under the smaller limit have the difference of the
//     bursts, and what the time since the root was last asked is worth more by the
//     new rate.
//   - A clock that is fast by ρ: its lease earns (1+ρ)·p. The script that replaces
//     the lease charges what was earned beyond p, so over the time between two
//     scripts the holder gains nothing. It may do so within a window that begins or
//     ends between two: there it has ρ·p for each side, for as long as it is from
//     one script to the next. Together that is 2·ρ·r times the longest time between
//     two scripts of one holder, which is less than what a lease is usable for,
//     0.9·TTL/(1+ρ). And what a script leaves a holder to make up for the time on
//     the way, r·TTL/20 at most, may be earned by the fast clock first.
type books struct {
	limits  []limitSpan
	paid    []entry
	total   int64 // of those
	allowed []allowance
	settled time.Duration // when the last limit was the only one in use, but for leases
	longest time.Duration // lease
	gap     time.Duration // between two scripts of one holder with a rate
	fast    float64       // the fastest clock: 0.1 gains a tenth
}

// An entry is n tokens admitted.
type entry struct {
	at time.Duration
	n  int64
}

// An allowance is an addition for all windows that overlap a time.
type allowance struct {
	from, to time.Duration
	tokens   float64
}

// A limitSpan is a limit that was given out at a time.
type limitSpan struct {
	from      time.Duration
	perMinute int64
	burst     int64
}

func newBooks(l hybrid.Limit) *books {
	b := &books{}
	b.change(-1, l)
	return b
}

func (b *books) change(at time.Duration, l hybrid.Limit) {
	b.limits = append(b.limits, limitSpan{at, int64(l.Count()), int64(l.Burst())})
}

// A token in the books is this many, so that a rate per minute is so many per
// nanosecond.
const whole = int64(time.Minute)

// A turn is what changes in the books at a time.
type turn struct {
	at          time.Duration
	rate, burst int64 // from now on, if rate > 0
	add         int64 // for the windows that are open, and for those to come
	end         int64 // no longer for those to come
}

// turns gives all changes in order of time.
func (b *books) turns() []turn {
	var turns []turn
	// The limits in use: the last one, and all before it until that has settled.
	rate, burst := int64(0), int64(0)
	for i, l := range b.limits {
		most := max(burst, l.burst)
		t := turn{at: l.from, rate: max(rate, l.perMinute), burst: most}
		if i > 0 {
			t.add = (most - burst) * whole
			t.end = t.add
		}
		turns = append(turns, t)
		rate, burst = t.rate, t.burst
	}
	last := b.limits[len(b.limits)-1]
	if len(b.limits) > 1 {
		turns = append(turns, turn{at: b.settled + 3*b.longest, rate: last.perMinute, burst: last.burst})
	}
	for _, a := range b.allowed {
		x := int64(math.Ceil(a.tokens*1e6)) * (whole / 1e6)
		turns = append(turns, turn{at: a.from, add: x}, turn{at: a.to, end: x})
	}
	slices.SortStableFunc(turns, func(x, y turn) int { return cmp.Compare(x.at, y.at) })
	return turns
}

// worst is the most by which a window exceeds the bound, in tokens; negative if
// none does. Windows are looked at by their ends: level is the largest excess of
// one that ends now, and one that begins now has floor.
func (b *books) worst() (excess float64, at time.Duration) {
	slices.SortStableFunc(b.paid, func(x, y entry) int { return cmp.Compare(x.at, y.at) })
	var (
		now                time.Duration
		rate, burst, added int64
		most               = int64(math.MinInt64)
		turns              = b.turns()
	)
	rate, burst, turns = turns[0].rate, turns[0].burst, turns[1:]
	floor := func() int64 { return -burst*whole - added - rate*1000 - b.driftTerm(rate) }
	level := floor()
	pass := func(to time.Duration) {
		if d := int64(to - now); d > 0 {
			level -= min(d, (level-floor())/rate+1) * rate
		}
		now = max(now, to)
		level = max(level, floor())
	}
	for _, e := range b.paid {
		for len(turns) > 0 && turns[0].at <= e.at {
			t := turns[0]
			turns = turns[1:]
			pass(t.at)
			if t.rate > 0 {
				rate, burst = t.rate, t.burst
			}
			level -= t.add
			added += t.add - t.end
			level = max(level, floor())
		}
		pass(e.at)
		if level += e.n * whole; level > most {
			most, at = level, e.at
		}
	}
	return float64(most) / float64(whole), at
}

// driftTerm is what fast clocks add, of a rate.
func (b *books) driftTerm(rate int64) int64 {
	if b.fast == 0 {
		return 0
	}
	usable := 0.9 * float64(b.longest) / (1 + b.fast)
	between := math.Min(float64(b.gap), usable)
	return int64(float64(rate) * (2*b.fast*between + float64(b.longest)/20))
}

// pay enters what was paid for.
func (b *books) pay(at time.Duration, n int64) {
	b.paid = append(b.paid, entry{at, n})
	b.total += n
}

// quota checks what one instance admitted by itself against a bucket, on its own
// clock.
func quota(entries []entry, perSecond, burst float64) (excess float64) {
	level, last := 0.0, time.Duration(0)
	excess = math.Inf(-1)
	for _, e := range entries {
		level = math.Max(0, level-(e.at-last).Seconds()*perSecond) + float64(e.n)
		last = e.at
		excess = math.Max(excess, level-burst)
	}
	return excess
}
