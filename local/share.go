package local

import (
	"math"
	"time"
)

// A Share is the token bucket that caps what one instance takes of a key: the
// pre-filter. It is charged when tokens are granted, not when they are spent,
// and what is held refills nothing: level + held never exceeds the burst, so
// that the instance admits at most burst + rate·w in any window w.
type Share struct {
	perNano float64 // tokens
	burst   float64
	level   float64
	held    float64
	at      int64
}

// NewShare returns a full bucket of that many tokens per second.
func NewShare(perSecond, burst float64, now int64) Share {
	return Share{perNano: perSecond / 1e9, burst: burst, level: burst, at: now}
}

// rounding is what a sum of many small credits may be short of a whole token.
const rounding = 1e-9

// Advance credits the time up to now, with the rights that were held until now.
func (s *Share) Advance(now int64) {
	if now <= s.at {
		return
	}
	credit := float64(now-s.at) * s.perNano
	s.level = math.Max(s.level, math.Min(s.level+credit, s.burst-s.held))
	s.at = now
}

// Hold says how many tokens are held from now on: granted and not yet spent.
// The caller has advanced the share to now.
func (s *Share) Hold(tokens int64) {
	s.held = float64(tokens)
	s.level = math.Max(0, math.Min(s.level, s.burst-s.held))
}

// Take charges n tokens and reports whether there were that many.
func (s *Share) Take(n int64) bool {
	if s.level+rounding < float64(n) {
		return false
	}
	s.level = math.Max(0, s.level-float64(n))
	return true
}

// Give takes back a charge for tokens that were not granted.
func (s *Share) Give(n int64) {
	s.level = math.Min(s.level+float64(n), s.burst-s.held)
}

// Level is how many whole tokens could be taken now.
func (s *Share) Level() int64 { return int64(s.level + rounding) }

// Full reports whether forgetting the share would give nothing away.
func (s *Share) Full() bool { return s.held == 0 && s.level+rounding >= s.burst }

// RetryAfter is how long n tokens take at most, n ≤ burst, if nobody else asks:
// at least one nanosecond.
func (s *Share) RetryAfter(n int64) time.Duration {
	return max(1, time.Duration(math.Ceil((float64(n)-s.level-rounding)/s.perNano)))
}

// Reset fills the bucket but for what is held.
func (s *Share) Reset() { s.level = math.Max(0, s.burst-s.held) }
