package local

import "time"

// Beside has the quota admit only what another one admits as well: a request takes
// from both or from neither. The other one belongs to this one from now on.
func (q *Quota) Beside(other *Quota) { q.others = append(q.others, other) }

// Others are the quotas beside this one, in the order in which they came.
func (q *Quota) Others() []*Quota { return q.others }

// haveAll reports whether the others have n tokens. What x/time/rate gains within a
// nanosecond it counts as there.
func (q *Quota) haveAll(n, now int64) bool {
	for _, o := range q.others {
		if n > o.burst || o.nanos(n, o.time(now)) >= 1 {
			return false
		}
	}
	return true
}

// takeAll takes n tokens from the others, which have them.
func (q *Quota) takeAll(n, now int64) {
	for _, o := range q.others {
		o.lim.AllowN(o.time(now), int(n))
	}
}

// Missing is how many whole tokens the emptiest of the quotas has gained less than it
// holds at most.
func (q *Quota) Missing(now int64) int64 {
	missing := max(0, q.burst-q.own(now))
	for _, o := range q.others {
		missing = max(missing, o.Missing(now))
	}
	return missing
}

// retryAfterAll is RetryAfter of the slowest of the quotas.
func (q *Quota) retryAfterAll(d time.Duration, n, now int64) time.Duration {
	for _, o := range q.others {
		d = max(d, o.RetryAfter(n, now))
	}
	return d
}
