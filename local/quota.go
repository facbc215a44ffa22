package local

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

// A Quota is what an instance admits of a key while Redis is gone: its fair
// part of the limit, on golang.org/x/time/rate.
//
// A quota outlives the outage it was made for: it is never made anew for the
// same key, so that a connection that comes and goes opens no burst.
type Quota struct {
	lim   *rate.Limiter
	burst int64
	last  int64 // x/time/rate mints tokens when its clock goes back

	others []*Quota // that admit as well
}

// epoch turns an instant into the time.Time that x/time/rate wants.
var epoch = time.Unix(0, 0)

// NewQuota returns a bucket of perSecond tokens per second and a burst of at
// least 1, which holds level tokens at now.
func NewQuota(perSecond float64, burst int64, level float64, now int64) *Quota {
	burst = max(1, min(burst, math.MaxInt)) // an int of x/time/rate
	q := &Quota{lim: rate.NewLimiter(rate.Limit(perSecond), int(burst)), burst: burst, last: now}
	q.Lower(level, now)
	return q
}

func (q *Quota) time(now int64) time.Time {
	q.last = max(q.last, now)
	return epoch.Add(time.Duration(q.last))
}

// Lower takes tokens out until no more than level whole ones are left.
func (q *Quota) Lower(level float64, now int64) {
	t := q.time(now)
	if surplus := int(q.lim.TokensAt(t) - math.Floor(math.Max(0, level))); surplus > 0 {
		q.lim.AllowN(t, surplus)
	}
}

// Reshape gives the quota another rate and burst from now on. What it holds
// stays, as far as it fits.
func (q *Quota) Reshape(perSecond float64, burst, now int64) {
	t := q.time(now)
	q.burst = max(1, min(burst, math.MaxInt))
	q.lim.SetLimitAt(t, rate.Limit(perSecond))
	q.lim.SetBurstAt(t, int(q.burst))
}

// Take spends n ≥ 1 tokens if there are that many.
func (q *Quota) Take(n, now int64) bool {
	if n < 1 || n > q.burst || !q.haveAll(n, now) || !q.lim.AllowN(q.time(now), int(n)) {
		return false
	}
	q.takeAll(n, now)
	return true
}

// TakeAbove is Take if at least so many tokens are left.
func (q *Quota) TakeAbove(n, least, now int64) bool {
	return (least == 0 || q.Tokens(now)-n >= least) && q.Take(n, now)
}

// Tokens is how many whole tokens are left at now.
func (q *Quota) Tokens(now int64) int64 {
	left := q.own(now)
	for _, o := range q.others {
		left = min(left, o.own(now))
	}
	return left
}

// own is Tokens of this one alone.
func (q *Quota) own(now int64) int64 {
	return int64(math.Max(0, q.lim.TokensAt(q.time(now))))
}

// Burst is the most that may be taken at once.
func (q *Quota) Burst() int64 {
	most := q.burst
	for _, o := range q.others {
		most = min(most, o.burst)
	}
	return most
}

// Full reports whether forgetting the quota would give nothing away.
func (q *Quota) Full(now int64) bool { return q.Missing(now) == 0 }

// RetryAfter is how long n tokens take if nobody else asks: at least one
// nanosecond. For n above the burst it is what the tokens take at this rate,
// although they will only ever be had from Redis.
func (q *Quota) RetryAfter(n, now int64) time.Duration {
	t := q.time(now)
	d := wait(q.nanos(n, t))
	if n > q.burst {
		return q.retryAfterAll(d, n, now)
	}
	// By then rounding may leave x/time/rate a hair short, which counts for it when
	// it takes a nanosecond to gain.
	for d < ages {
		short := q.nanos(n, t.Add(d))
		if short < 1 {
			break
		}
		d += min(wait(short), ages-d)
	}
	return q.retryAfterAll(d, n, now)
}

// nanos is how many nanoseconds what is missing of n tokens at t takes.
func (q *Quota) nanos(n int64, t time.Time) float64 {
	return (float64(n) - q.lim.TokensAt(t)) / float64(q.lim.Limit()) * 1e9
}

// Give puts back n tokens that were taken and not used, as far as there is room, and
// tells how many it were. Others get as many, as far as they have room.
func (q *Quota) Give(n, now int64) int64 {
	t := q.time(now)
	n = max(0, min(n, int64(float64(q.burst)-q.lim.TokensAt(t)+0x1p-20)))
	q.lim.ReserveN(t, -int(n)) // which has to wait for nothing, unlike AllowN
	for _, o := range q.others {
		o.Give(n, now)
	}
	return n
}

// Book takes n ≥ 1 tokens if no fewer than least are left, which may be a debt, and
// tells how long that takes to be paid.
func (q *Quota) Book(n, least, now int64) (time.Duration, bool) {
	t := q.time(now)
	if n < 1 || n > q.burst || q.lim.TokensAt(t)-float64(n) < float64(least)-0x1p-20 {
		return 0, false
	}
	q.lim.ReserveN(t, int(n))
	if q.lim.TokensAt(t) >= 0 {
		return 0, true
	}
	return wait(q.nanos(0, t)), true
}

// Owe takes up to n tokens, down to a debt of the burst, and tells how many it were.
// Others are taken as many, down to their own debts.
func (q *Quota) Owe(n, now int64) (taken int64) {
	t := q.time(now)
	n = max(0, min(n, int64(math.Floor(q.lim.TokensAt(t)+float64(q.burst)+0x1p-20))))
	for taken < n {
		step := min(n-taken, q.burst)
		q.lim.ReserveN(t, int(step))
		taken += step
	}
	for _, o := range q.others {
		o.Owe(n, now)
	}
	return taken
}
