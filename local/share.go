package local

import (
	"math"
	"time"
)

// A Share is the token bucket that caps what one instance takes of a key: the
// pre-filter. It is charged when tokens are granted, not when they are spent,
// and what is held refills nothing: level + held never exceeds the burst, so
// that the instance admits at most burst + rate·w in any window w. What a lease
// earns by a rate of its own comes out of the share's rate.
type Share struct {
	perSecond float64 // tokens
	burst     float64
	slack     float64 // what rounding may make of a whole token
	held      float64
	lent      float64 // tokens per second that a lease earns
	until     int64   // the instant at which it ceases to
	level     float64 // at the instant at; below 0 it owes something
	at        int64

	// The level is always worked out from here, so that asking often neither loses
	// nor gains by rounding.
	base  float64 // the level at the instant since, less what was taken after it
	since int64
}

// epsilon is the error of a few operations, in relative terms.
const epsilon = 0x1p-49

// ages is the longest time told to anybody: added to an instant it overflows
// nothing.
const ages = math.MaxInt64 / 2

// NewShare returns a full bucket of that many tokens per second.
func NewShare(perSecond, burst float64, now int64) Share {
	return Share{
		perSecond: perSecond, burst: burst, slack: burst * epsilon,
		level: burst, at: now, base: burst, since: now,
	}
}

// Advance credits the time up to now, with the rights that were held until now.
func (s *Share) Advance(now int64) {
	if s.lent > 0 {
		s.advance(min(now, s.until), s.perSecond-s.lent)
		if now >= s.until {
			s.set(s.level)
			s.lent = 0
		}
	}
	s.advance(now, s.perSecond)
}

func (s *Share) advance(now int64, perSecond float64) {
	if now <= s.at {
		return
	}
	s.at = now
	credit := float64(now-s.since) * perSecond / 1e9
	full := math.Max(s.level, s.burst-s.held)
	s.level = math.Min(s.base+credit, full)
	if s.level == full || credit > s.burst {
		s.set(s.level)
	}
}

// set starts anew from a level.
func (s *Share) set(level float64) { s.level, s.base, s.since = level, level, s.at }

// Hold says how many tokens are held from now on: granted and not yet spent.
// The caller has advanced the share to now.
func (s *Share) Hold(tokens int64) {
	s.held = float64(tokens)
	if room := math.Max(0, s.burst-s.held); s.level > room {
		s.set(room)
	}
}

// Lend says that a lease earns that many micro-tokens per second from now on, until
// an instant. The caller has advanced the share to now.
func (s *Share) Lend(perSecond, until int64) {
	if lent := float64(perSecond) / Unit; lent != s.lent {
		s.set(s.level)
		s.lent = lent
	}
	s.until = until
}

// Take charges n tokens and reports whether there were that many.
func (s *Share) Take(n int64) bool {
	if n < 0 || s.level+s.slack < float64(n) {
		return false
	}
	s.Owe(n) // what rounding was trusted with, too: the level may be a hair below 0
	return true
}

// Owe charges n tokens, whether there are that many or not.
func (s *Share) Owe(n int64) {
	s.level -= float64(n)
	s.base -= float64(n)
}

// Give takes back a charge for tokens that were not granted.
func (s *Share) Give(n int64) { s.give(float64(n)) }

// Restore takes back micro-tokens that a lease held and has not spent.
func (s *Share) Restore(micro int64) { s.give(float64(micro) / Unit) }

func (s *Share) give(tokens float64) {
	s.set(math.Max(s.level, math.Min(s.level+tokens, s.burst-s.held)))
}

// Level is how many whole tokens could be taken now; a debt is below 0.
func (s *Share) Level() int64 { return int64(math.Floor(s.level + s.slack)) }

// HasWith reports whether n tokens could be taken now if that many micro-tokens,
// which a lease holds, were given back.
func (s *Share) HasWith(n, micro int64) bool {
	return s.level+float64(micro)/Unit+s.slack >= float64(n)
}

// Full reports whether forgetting the share would give nothing away.
func (s *Share) Full() bool { return s.held == 0 && s.level+s.slack >= s.burst }

// RetryAfter is how long n tokens take at most, n ≤ burst, if nobody else asks
// and the micro-tokens that are held will be given back: at least one nanosecond.
func (s *Share) RetryAfter(n, micro int64) time.Duration {
	return wait((float64(n) - s.level - float64(micro)/Unit) / s.perSecond * 1e9)
}

// PaidIn is how long a debt takes to be paid by what is not lent: 0 if there is none.
func (s *Share) PaidIn() time.Duration {
	debt := -s.level - s.slack
	if debt <= 0 {
		return 0
	}
	if left := s.until - s.at; s.lent > 0 && left > 0 {
		net := (s.perSecond - s.lent) / 1e9 // tokens per nanosecond
		if net*float64(left) >= debt {
			return wait(debt / net)
		}
		debt -= net * float64(left)
		return time.Duration(left) + min(wait(debt/s.perSecond*1e9), ages-time.Duration(left))
	}
	return wait(debt / s.perSecond * 1e9)
}

// Reshape gives the bucket another rate and burst from the instant of the last
// Advance on. The level stays, as far as it fits.
func (s *Share) Reshape(perSecond, burst float64) {
	s.perSecond, s.burst, s.slack = perSecond, burst, burst*epsilon
	s.set(math.Min(s.level, math.Max(0, burst-s.held)))
}

// Reset fills the bucket but for what is held.
func (s *Share) Reset() { s.set(math.Max(0, s.burst-s.held)) }

// wait is a computed number of nanoseconds as a time to wait: rounded up, but
// not because of an error of the computation, and within [1, ages].
func wait(nanos float64) time.Duration {
	nanos = math.Ceil(nanos - math.Min(0.1, nanos*0x1p-51))
	if nanos >= ages {
		return ages
	}
	return max(1, time.Duration(nanos))
}
