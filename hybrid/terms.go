package hybrid

import (
	"fmt"
	"math"
	"time"

	"github.com/resilient-go/limiter/local"
	"github.com/resilient-go/limiter/remote"
)

// terms are a limit and everything that follows from it for this instance. They
// never change: another limit makes other terms.
type terms struct {
	limit Limit
	units
	version int64
	timed   bool     // what the root holds does not follow from its level and the rate
	tiers   *tierSet // further ones; nil: none
	largest int64    // the largest request that can ever pass,
	// and of those that leave the reserve alone
	largestLow int64
	deepest    int64 // the largest burst of all tiers
	mostRate   int64 // of a lease, in micro-tokens per second
	perToken   int64 // nanoseconds, if that is a whole number; else 0
}

// newTerms validates a limit in the light of the options.
func newTerms(c *config, limit Limit, version int64) (*terms, error) {
	if limit == Unlimited || limit == Blocked {
		return &terms{limit: limit, version: version, largest: limit.burst, largestLow: limit.burst}, nil
	}
	u, err := limit.units()
	if err != nil {
		return nil, err
	}
	if err := c.algorithm.suits(limit); err != nil {
		return nil, err
	}
	if c.share*float64(u.burst) < 1 {
		return nil, &ConfigError{Field: "WithLocalShare", Reason: fmt.Sprintf("%v of a burst of %d is less than one request", c.share, u.burst)}
	}
	return c.terms(limit, u, version), nil
}

func (c *config) terms(limit Limit, u units, version int64) *terms {
	t := &terms{
		limit: limit, units: u, version: version, timed: c.algorithm.windowed(), tiers: c.tiers,
		largest:  max(1, int64(c.share*float64(u.burst)+1e-9)),
		mostRate: int64(c.share * u.rate.PerSecond() * local.Unit),
		deepest:  u.burst,
	}
	for _, u := range c.tiers.all() {
		t.largest, t.deepest = min(t.largest, u.burst), max(t.deepest, u.burst)
	}
	t.largestLow = t.largest - t.largest*c.thousandths()/1000
	if x := u.rate.Den * local.Unit * 1000; x%u.rate.Num == 0 {
		t.perToken = x / u.rate.Num
	}
	return t
}

// theirTerms are those of a limit that another instance asked for, and that the
// root prefers to ours.
func (c *config) theirTerms(r remote.Limit) *terms {
	l := c.algorithm.ofUnits(r)
	return c.terms(l, units{rate: local.Rate{Num: r.Num, Den: r.Den}, burst: l.burst}, r.Version)
}

// fixed reports whether the limit is no bucket: Unlimited or Blocked.
func (t *terms) fixed() bool { return t.limit.period == 0 }

// same reports whether both come from the same limit and version.
func (t *terms) same(o *terms) bool { return t.limit == o.limit && t.version == o.version }

// after are fixed terms for a key that had others: they keep the bucket of those,
// under which permits are on lease and a message may be under way.
func (t *terms) after(bucket *terms) *terms {
	k := *bucket
	k.limit, k.version, k.largest, k.largestLow = t.limit, t.version, t.largest, t.largestLow
	return &k
}

func (t *terms) remote() remote.Limit {
	return remote.Limit{Num: t.rate.Num, Den: t.rate.Den, Burst: t.burst * local.Unit, Version: t.version}
}

// rule decides by a limit that is no bucket.
func (t *terms) rule() Result {
	if t.limit == Unlimited {
		return Result{Allowed: true, Source: SourceRule, Limit: t.limit, Remaining: math.MaxInt}
	}
	return Result{Source: SourceRule, Limit: t.limit, RetryAfter: blockedFor, ResetAfter: blockedFor}
}

// blockedFor is how long callers of a blocked key are told to stay away.
const blockedFor = time.Minute

// retryAfter is how long n tokens take at the root as it was last told: until
// it has them, or, where leases leave too little room, until those end.
func (t *terms) retryAfter(root *rootView, n, now int64) time.Duration {
	if t.timed {
		return root.within(n, now)
	}
	if t.tiers != nil {
		return max(1, t.tiersDue(root, n)-time.Duration(now-root.told))
	}
	missing := n*local.Unit - root.tokens
	d := t.timeFor(missing)
	if left := root.lastEnd - root.told; root.rates > 0 && missing > 0 && left > 0 {
		// Until the leases end the root gains only what they leave.
		net := t.rate.PerSecond() - float64(root.rates)/local.Unit // tokens per second
		gained := int64(math.Max(0, net) * float64(left) / 1e9 * local.Unit)
		if missing <= gained {
			d = time.Duration(math.Ceil(float64(missing) / local.Unit / net * 1e9))
		} else {
			d = time.Duration(left) + t.timeFor(missing-gained)
		}
	}
	if short := n*local.Unit - (t.burst*local.Unit - root.out); short > 0 && root.out > 0 {
		d = max(d, time.Duration(root.lastEnd-root.told)+t.timeFor(short))
	}
	if root.out > 0 || root.rates > 0 {
		d = t.metered(d)
	}
	return max(1, d-time.Duration(now-root.told))
}

// timeFor is how long that many micro-tokens take at Redis, which counts whole
// microseconds.
func (t *terms) timeFor(micro int64) time.Duration {
	d := t.rate.TimeFor(micro)
	return d + (time.Microsecond-d%time.Microsecond)%time.Microsecond
}

// metered is what a caller is told to wait for what takes d where leases are
// about. A lease may be returned meanwhile, and on the way the root, which counts
// whole microseconds, may lose a few of them and a few micro-tokens.
func (t *terms) metered(d time.Duration) time.Duration {
	d += time.Duration(32*1000/t.rate.PerSecond()) + 4*time.Microsecond - 1
	return d - d%time.Microsecond
}

// refuse makes a refusal.
func (t *terms) refuse(src Source, remaining int64, retry time.Duration) Result {
	r := t.result(src, remaining)
	r.RetryAfter = max(1, retry)
	return r
}

// allow makes an admission.
func (t *terms) allow(src Source, remaining int64) Result {
	r := t.result(src, remaining)
	r.Allowed = true
	return r
}

// admit makes the admission of a lease in place: the hot path copies nothing.
func (t *terms) admit(r *Result, remaining int64) {
	remaining = max(0, min(remaining, t.burst))
	r.Allowed = true
	r.Source = SourceLease
	r.Limit = t.limit
	r.Remaining = int(remaining)
	r.ResetAfter = t.timeToFill(t.burst - remaining)
}

func (t *terms) result(src Source, remaining int64) Result {
	remaining = max(0, min(remaining, t.burst))
	return Result{
		Source: src, Limit: t.limit, Remaining: int(remaining),
		ResetAfter: t.timeToFill(t.burst - remaining),
	}
}

// timeToFill is how long that many tokens take: for most limits a division less.
func (t *terms) timeToFill(tokens int64) time.Duration {
	if t.perToken > 0 {
		return time.Duration(tokens * t.perToken)
	}
	return t.rate.TimeFor(tokens * local.Unit)
}

// ofQuota makes a decision of the outage policy about this instance's part, of
// which that many tokens remain.
func (t *terms) ofQuota(shape *quotaShape, allowed bool, remaining int64, retry time.Duration) Result {
	remaining = max(0, min(remaining, t.burst))
	return Result{
		Allowed: allowed, Source: SourceDegraded, Limit: t.limit, Remaining: int(remaining), RetryAfter: retry,
		ResetAfter: shape.timeToFill(remaining),
	}
}

// degraded makes an admission of the outage policy in place.
func (t *terms) degraded(r *Result, shape *quotaShape, remaining int64) {
	remaining = max(0, min(remaining, t.burst))
	r.Allowed = true
	r.Source = SourceDegraded
	r.Limit = t.limit
	r.Remaining = int(remaining)
	r.ResetAfter = shape.timeToFill(remaining)
}
