package local_test

import "math/big"

// bucket is a token bucket in exact arithmetic. It starts full, and a sequence
// of admissions stays within burst + rate·w in every window w if and only if it
// can pay for each of them.
type bucket struct {
	perNano, burst, level *big.Rat
	at                    int64
}

func newBucket(perSecond, burst float64) *bucket {
	b := &bucket{perNano: rat(perSecond), burst: rat(burst), level: rat(burst)}
	b.perNano.Quo(b.perNano, rat(1e9))
	return b
}

func rat(x float64) *big.Rat { return new(big.Rat).SetFloat64(x) }

// advance credits the time up to now.
func (b *bucket) advance(now int64) {
	credit := new(big.Rat).SetInt64(now - b.at)
	b.level.Add(b.level, credit.Mul(credit, b.perNano))
	if b.level.Cmp(b.burst) > 0 {
		b.level.Set(b.burst)
	}
	b.at = now
}

// add changes the level, upwards to the burst at most.
func (b *bucket) add(tokens int64) {
	b.level.Add(b.level, new(big.Rat).SetInt64(tokens))
	if b.level.Cmp(b.burst) > 0 {
		b.level.Set(b.burst)
	}
}

// has reports whether the level is at least tokens, give or take some.
func (b *bucket) has(tokens int64, more float64) bool {
	return new(big.Rat).Add(b.level, rat(more)).Cmp(new(big.Rat).SetInt64(tokens)) >= 0
}
