package hybrid

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/resilient-go/limiter/local"
	"github.com/resilient-go/limiter/remote"
)

// WithTiers adds limits that hold for each key besides the one that New is given: ten
// per second and a thousand per hour. A request takes its tokens from all of them or
// from none, in one call; what is lent to an instance is lent from all of them. It must
// fit the smallest burst. Results tell of the first limit, of what the tightest has
// left, and of when the last to have enough has it. In an outage each tier has its
// part. Tiers are token buckets; they are the same for all keys and do not change, and
// instances of one name must agree on them. No [WithAlgorithm] and no [WithLocalShare]
// goes with them. Default: none.
func WithTiers(limits ...Limit) Option {
	return func(c *config) { c.tierLimits = append(c.tierLimits, limits...) }
}

// tiersOf validates the further tiers.
func (c *config) tiersOf() (*tierSet, error) {
	bad := func(format string, args ...any) (*tierSet, error) {
		return nil, &ConfigError{Field: "WithTiers", Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case len(c.tierLimits) == 0:
		return nil, nil
	case len(c.tierLimits) > mostTiers:
		return bad("at most %d, not %d", mostTiers, len(c.tierLimits))
	case c.algorithm != TokenBucket:
		return bad("they are token buckets, which contradicts WithAlgorithm(%v)", c.algorithm)
	case c.share != 1:
		return bad("contradict WithLocalShare")
	}
	tiers := &tierSet{}
	for _, limit := range c.tierLimits {
		u, err := limit.units()
		if err != nil || limit == Unlimited || limit == Blocked {
			return bad("%v is no limit of a tier: %v", limit, err)
		}
		tiers.list = append(tiers.list, u)
	}
	return tiers, nil
}

// A tierSet is the tiers besides the limit. It never changes.
type tierSet struct{ list []units }

func (s *tierSet) all() []units {
	if s == nil {
		return nil
	}
	return s.list
}

// mostTiers bounds what one call has to look at.
const mostTiers = 8

// tiersName ends the default name of a limiter.
func (c *config) tiersName() string {
	var b strings.Builder
	for _, limit := range c.tierLimits {
		b.WriteString(" and " + limit.String())
	}
	return b.String()
}

// remoteTiers are the tiers as the scripts take them.
func (c *config) remoteTiers() (tiers []remote.Limit) {
	for _, u := range c.tiers.all() {
		tiers = append(tiers, remote.Limit{Num: u.rate.Num, Den: u.rate.Den, Burst: u.burst * local.Unit})
	}
	return tiers
}

// eachTier calls f with the limit of each tier and what it held, in micro-tokens, when
// the root was last heard of: the terms' own first.
func (t *terms) eachTier(root *rootView, f func(u *units, tokens int64)) {
	of := func(i int) int64 {
		if i < len(root.tiers) {
			return root.tiers[i]
		}
		return root.tokens
	}
	f(&t.units, of(0))
	further := t.tiers.all()
	for i := range further {
		f(&further[i], of(i+1))
	}
}

// tiersGrown is what the tightest tier grows to in that time.
func (t *terms) tiersGrown(root *rootView, elapsed time.Duration) float64 {
	least := math.Inf(1)
	t.eachTier(root, func(u *units, tokens int64) {
		grown := float64(tokens) + math.Max(0, u.rate.In(elapsed))
		least = math.Min(least, math.Min(grown, float64(u.burst*local.Unit)))
	})
	return least
}

// tiersDue is how long after the root was heard of all tiers have n tokens: what they
// lack, and where leases leave too little room, until those end.
func (t *terms) tiersDue(root *rootView, n int64) time.Duration {
	longest := time.Duration(0)
	t.eachTier(root, func(u *units, tokens int64) {
		longest = max(longest, u.timeFor(n*local.Unit-tokens))
		if short := n*local.Unit - (u.burst*local.Unit - root.out); short > 0 && root.out > 0 {
			longest = max(longest, time.Duration(root.lastEnd-root.told)+u.timeFor(short))
		}
	})
	return longest
}

// tiersTurn is the least time until n tokens can be had, those of whoever is ahead
// included.
func (t *terms) tiersTurn(root *rootView, n, now int64) time.Duration {
	longest := 0.0
	t.eachTier(root, func(u *units, tokens int64) {
		missing := float64(n*local.Unit-tokens) - u.rate.In(time.Duration(now-root.at))
		longest = math.Max(longest, missing/u.rate.PerSecond()*1000)
	})
	return time.Duration(math.Min(longest, math.MaxInt64/4))
}

// timeFor is how long that many micro-tokens take at Redis, which counts whole
// microseconds. Far more than a burst are estimated.
func (u *units) timeFor(micro int64) time.Duration {
	if micro > 2*u.burst*local.Unit {
		return time.Duration(math.Min(float64(micro)/u.rate.PerSecond()*1000, math.MaxInt64/4))
	}
	d := u.rate.TimeFor(micro)
	return d + (time.Microsecond-d%time.Microsecond)%time.Microsecond
}

// besides are the quotas of the further tiers in an outage: the part of each, and of
// what it held. mu of the fallback is held.
func (f *fallback) besides(l *Limiter, e *entry, part float64, reshaped bool, now int64) {
	others := f.quota.Others()
	for i, u := range l.cfg.tiers.all() {
		shape := newQuotaShape(&l.cfg, u, part)
		level := float64(shape.first)
		switch {
		case l.cfg.strict:
			level = 0
		case e.root.known && i+1 < len(e.root.tiers):
			grown := float64(e.root.tiers[i+1]) + u.rate.In(time.Duration(now-e.root.at))
			level = part*math.Min(grown, float64(u.burst*local.Unit))/local.Unit + rounding
		}
		switch {
		case i >= len(others):
			f.quota.Beside(local.NewQuota(shape.perSecond, shape.first, level, now))
		default:
			if reshaped {
				others[i].Reshape(shape.perSecond, shape.first, now)
			}
			if f.fresh {
				others[i].Lower(level, now)
			}
		}
	}
}
