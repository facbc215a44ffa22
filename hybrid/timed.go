package hybrid

import (
	"time"

	"github.com/resilient-go/limiter/local"
	"github.com/resilient-go/limiter/remote"
)

// A fit is what a timed root has said of a request that it refused. What it holds
// does not follow from its level and a rate, as that of a bucket does.
type fit struct {
	n  int64         // tokens
	in time.Duration // from the instant of the answer
}

// fitsOf takes from an answer what it says of the requests that were refused. Those
// of low priority need besides what is kept from them.
func fitsOf(needs []remote.Need, a remote.Answer, kept int64) (fits []fit) {
	for i, in := range a.Fits {
		if in > 0 {
			n := needs[i].Tokens / local.Unit
			if needs[i].Low {
				n += kept
			}
			fits = append(fits, fit{n, time.Duration(in) * time.Microsecond})
		}
	}
	return fits
}

// notBefore is the instant before which a timed root cannot have n tokens, as far as
// it has said anything about that.
func (r *rootView) notBefore(n int64) (at int64, known bool) {
	if n*local.Unit <= r.tokens {
		return 0, false
	}
	for _, f := range r.fits {
		if f.n <= n {
			at, known = max(at, r.at+int64(f.in)), true
		}
	}
	return at, known
}

// within is how long after now a timed root has n tokens at the latest if nobody
// asks: what it said of as many or more, or else until all is free.
func (r *rootView) within(n, now int64) time.Duration {
	if n*local.Unit <= r.tokens {
		return 1
	}
	at := r.reset
	for _, f := range r.fits {
		if f.n >= n {
			at = min(at, r.told+int64(f.in))
		}
	}
	return time.Duration(max(1, at-now))
}

// timedSure is what a timed root holds at now if nobody else has taken any.
func (r *rootView) timedSure(burst, now int64) float64 {
	tokens := r.tokens
	for _, f := range r.fits {
		if now >= r.told+int64(f.in+moment) {
			tokens = max(tokens, f.n*local.Unit)
		}
	}
	if now >= r.reset+int64(moment) {
		tokens = burst * local.Unit
	}
	return float64(tokens)
}

// timedBound is the most that a timed root is taken to hold at now, for a start in
// an outage: what it had, until all of it is free again.
func (r *rootView) timedBound(burst, now int64) float64 {
	if now-r.at >= r.reset-r.told {
		return float64(burst * local.Unit)
	}
	return float64(r.tokens)
}

// timedTurn is the least time until n tokens can be had of a timed root, those
// for whoever is ahead included: what it said, or what so many windows take.
func (t *terms) timedTurn(r *rootView, n, now int64) time.Duration {
	at, _ := r.notBefore(n)
	// Across the ends of a fixed window twice the burst may pass at once.
	windows := (n+t.burst-1)/t.burst - 2
	return max(0, time.Duration(at-now), time.Duration(windows)*t.limit.period)
}

// untilReset gives a result the time until the root is free again, where that does
// not follow from what remains.
func (e *entry) untilReset(res *Result, now int64) {
	if t := e.force(); !t.timed && t.tiers == nil || res.Source == SourceDegraded || res.Source == SourceRule {
		return
	}
	res.ResetAfter = time.Duration(max(0, e.resetAt.Load()-now, int64(res.RetryAfter)))
}
