package hybrid

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// A Jitter says how much of a delay is left to chance, so that those who were
// refused together do not come back together.
type Jitter uint8

const (
	// FullJitter draws from nothing to the whole delay. The default.
	FullJitter Jitter = iota
	// EqualJitter draws from half to the whole delay.
	EqualJitter
	// NoJitter is the whole delay.
	NoJitter
)

// A Backoff is an exponential back-off: before try i, counted from 0, base·2^i,
// but never more than a cap, less the jitter. See "Exponential Backoff And Jitter"
// by Marc Brooker (2015). The zero Backoff has a base of [DefaultBackoff], a cap of
// [DefaultMaxBackoff] and full jitter.
type Backoff struct {
	base, most time.Duration
	jitter     Jitter
}

// The defaults of a [Backoff].
const (
	DefaultBackoff    = 100 * time.Millisecond
	DefaultMaxBackoff = 10 * time.Second
)

// NewBackoff returns a back-off. The error is a [*ConfigError]: the base must be
// positive and at most the cap.
func NewBackoff(base, most time.Duration, jitter Jitter) (Backoff, error) {
	switch {
	case base <= 0:
		return Backoff{}, &ConfigError{Field: "NewBackoff", Reason: fmt.Sprintf("the base must be positive, not %v", base)}
	case most < base:
		return Backoff{}, &ConfigError{Field: "NewBackoff", Reason: fmt.Sprintf("the cap of %v is below the base of %v", most, base)}
	case jitter > NoJitter:
		return Backoff{}, &ConfigError{Field: "NewBackoff", Reason: fmt.Sprintf("unknown jitter %d", jitter)}
	}
	return Backoff{base, most, jitter}, nil
}

// Delay is how long to wait before a try, at least a nanosecond. Tries below 0 are
// the first.
func (b Backoff) Delay(try int) time.Duration {
	if b.base == 0 {
		b.base, b.most = DefaultBackoff, DefaultMaxBackoff
	}
	whole := b.most
	// most>>try is below base<<try just when the latter is above the cap, or would
	// not fit.
	if try = max(0, try); try < 63 && b.base <= b.most>>try {
		whole = b.base << try
	}
	switch b.jitter {
	case NoJitter:
		return whole
	case EqualJitter:
		half := whole / 2
		return whole - time.Duration(rand.Int64N(int64(half)+1))
	default:
		return 1 + time.Duration(rand.Int64N(int64(whole)))
	}
}
