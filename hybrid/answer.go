package hybrid

import (
	"math"
	"time"

	"github.com/resilient-go/limiter/local"
	"github.com/resilient-go/limiter/remote"
)

// apply takes in the lease that an answer describes, and the limit that applies.
// mu is held.
func (l *Limiter) apply(e *entry, f *flight, a remote.Answer, now int64) {
	l.govern(e, f.msg.Limit, a.Limit, now)
	total := a.Lump / local.Unit
	granted := max(0, total-f.kept-f.held(a))
	due := int64(0) // below, a renewal is
	switch {
	case a.Rate > 0: // it renews by the horizon
		l.counts.grants.Add(1)
		l.counts.granted.Add(uint64(granted))
	case granted > 0:
		l.counts.grants.Add(1)
		l.counts.granted.Add(uint64(granted))
		lead := 2 * e.demand.PerSecond() * time.Duration(l.rtt.Load()).Seconds()
		due = int64(math.Ceil(math.Max(renewBelow*float64(total), math.Min(lead, float64(total)/2))))
	case f.msg.Want == 0 && total > 0:
		due = int64(math.Ceil(renewBelow * float64(total)))
	}
	// Without a grant the root is short: spend what is held, then ask exactly.
	ttl := int64(a.TTL)
	opens := f.sent + ttl/2
	if a.Rate > 0 {
		opens = f.sent + f.horizon // others may need more of the rate by then, or less
	}
	reserve := l.keep(low, total)
	if a.Rate > 0 {
		reserve = l.keep(low, a.Burst/local.Unit)
	}
	e.lease.Reserve(reserve)
	if f.msg.Reserve > 0 && due > 0 { // those of low priority have less of it
		due += reserve
	}
	lost := e.lease.Grant(f.kept, total, opens, f.sent+int64(float64(ttl)*leaseUsable), due)
	l.counts.expired.Add(uint64(lost))
	e.lease.Metered(a.Rate, a.Burst, f.sent, now)
	if e.share != nil {
		e.share.Advance(now)
		e.share.Take(granted)
		e.hold(now, 0)
	}
	over := notCharged(f.debit, a.Beyond)
	e.unpaid += over
	l.unaccounted(e, over)
	l.settle(e)
	e.root = newRootView(a.Level, f.sent, now)
	e.root.fits = fitsOf(f.msg.Needs, a, l.atRoot(e, low))
	e.root.tiers = a.Tiers
	e.resetAt.Store(e.root.reset)
	e.hint.Store(max(0, a.Tokens/local.Unit))
	e.fallback.heard()
	e.part, e.partUntil = float64(a.Part)/remote.Whole, 0
	if a.TTL > 0 {
		e.partUntil = f.sent + ttl
	}
	if a.Lost {
		l.reportLost(e, a.Level)
	}
	l.watchLevel(e, a.Level, now)
	if !e.lease.Idle() {
		l.sweeper.start(l)
	}
	rtt := now - f.sent
	l.rtt.Store((l.rtt.Load()*7 + rtt) / 8)
}

// held is how many tokens of an answer are on lease for requests that hold them there.
func (f *flight) held(a remote.Answer) (tokens int64) {
	for i, need := range f.msg.Needs {
		if need.Hold {
			tokens += a.Granted[i] * need.Tokens / local.Unit
		}
	}
	return tokens
}

// govern puts the limit in force that the root says applies where that was asked for.
// mu is held.
func (l *Limiter) govern(e *entry, asked, applies remote.Limit, now int64) {
	if e.mine.fixed() || asked != e.mine.remote() { // since the message was sent
		return
	}
	t, theirs := l.termsOf(e.mine, applies)
	l.adopt(e, t, now)
	if theirs {
		l.reportMismatch(e, t)
	}
}

// termsOf are the terms of the limit that applies, ours or those of another
// instance.
func (l *Limiter) termsOf(ours *terms, applies remote.Limit) (t *terms, theirs bool) {
	if r := ours.remote(); applies.Num == r.Num && applies.Den == r.Den && applies.Burst == r.Burst {
		return ours, false
	}
	return l.cfg.theirTerms(applies), true
}

// distribute hands an answer out to those it is for. The patient ones among the
// refused go back to the head of the queue. mu is held.
func (l *Limiter) distribute(e *entry, f *flight, a remote.Answer, now int64) {
	// Redis decided one after the other: the first of those admitted saw what the
	// later ones took.
	taken, upToFirst := int64(0), int64(0) // the latter with the first that was refused
	next := f.waiters
	for i, need := range f.msg.Needs {
		taken += a.Granted[i] * need.Tokens
		if a.Granted[i] < need.Count && upToFirst == 0 && !need.Book {
			upToFirst = taken + need.Tokens + l.atRoot(e, next[0].kind)*local.Unit
		}
		next = next[need.Count:]
	}
	remaining := e.hint.Load() + e.lease.Balance(now) + taken/local.Unit - f.held(a) // which is on lease
	leaky := l.cfg.algorithm == LeakyBucket
	water := e.force().burst*local.Unit - a.Tokens - taken // in a leaky bucket, before any of them
	var (
		refused                    []*waiter
		least, leastLow, leastBook int64 // the smallest request that the root was too empty for, of each priority
		blocked                    bool  // one that queues was refused: those behind it waited for it alone
		spare                      int64 // charged for callers who have left
	)
	behind := taken // by requests after the one at hand
	next = f.waiters
	for i, need := range f.msg.Needs {
		run, n := next[:need.Count], need.Tokens/local.Unit
		next = next[need.Count:]
		for _, w := range run[:a.Granted[i]] {
			remaining -= n
			if w.kind&low != 0 {
				e.note(n) // what is refused to them is no demand: it would crowd out the others
			}
			behind -= need.Tokens
			switch {
			case need.Book && !w.gone:
				e.claim = claim{due: l.due(e, f, a.Tokens+behind, now)}
				l.decide(e, w, e.force().allow(SourceRedis, remaining))
			case w.gone && need.Book && a.Tokens+behind < 0: // it is not due: nobody can have it now
				e.debit -= n
			case w.gone && need.Hold: // it stays on lease
			case w.gone:
				spare += n
			case need.Hold && e.lease.TakeLate(now, n):
				l.decide(e, w, e.force().allow(SourceLease, remaining))
			case leaky && w.patient:
				l.admitAt(e, w, e.force().allow(SourceRedis, remaining), now+int64(e.force().turnAt(water)))
			default:
				l.decide(e, w, e.force().allow(SourceRedis, remaining))
			}
			water += need.Tokens
		}
		for _, w := range run[a.Granted[i]:] {
			if e.share != nil {
				e.share.Give(n)
			}
			smallest, reach := &least, l.reach(e, n, w.patient)
			switch {
			case w.kind&books != 0:
				smallest = &leastBook
			case w.kind&low != 0:
				smallest = &leastLow
			}
			if !blocked && (*smallest == 0 || reach < *smallest) {
				*smallest = reach
			}
			if !w.gone {
				refused = append(refused, w)
			}
		}
		blocked = blocked || need.Queue && a.Granted[i] < need.Count
	}
	e.compete(least+leastLow > 0, f.expected >= float64(upToFirst))
	if least > 0 {
		l.hush(e, least, 0, now)
		e.refused = now
	}
	if leastBook > 0 {
		l.hush(e, leastBook+l.atRoot(e, books), books, now)
	}
	if leastLow > 0 {
		l.hush(e, leastLow+l.atRoot(e, low), low, now)
	}
	// What was charged for those who left goes to the next in line at once, or is
	// lost: returned later, it might come on top of what the root has refilled.
	var back []*waiter
	for _, w := range refused {
		switch {
		case leaky && w.patient && w.tooLate(f, e.force().turnAt(water)):
			l.finish(e, w, verdict{err: ErrWouldExceedDeadline})
		case len(back) == 0 && w.n <= spare && w.kind&low == 0 && !leaky:
			spare -= w.n
			e.claim = claim{}
			l.decide(e, w, e.force().allow(SourceRedis, remaining))
		case w.patient:
			back = append(back, w)
			water += w.n * local.Unit
		default:
			l.decide(e, w, e.force().refuse(SourceRedis, remaining, l.nextTry(e, back, w.n, w.kind, now)))
		}
	}
	l.counts.lost.Add(uint64(spare))
	e.queue = append(back, e.queue...)
}

// settle counts what the lease has earned by its rate. mu is held.
func (l *Limiter) settle(e *entry) { l.counts.granted.Add(uint64(e.lease.Earned())) }

// nextTry is when n tokens can be had after a refusal of the root: from the
// lease's own rate, or from the root.
func (l *Limiter) nextTry(e *entry, ahead []*waiter, n int64, k kind, now int64) time.Duration {
	if d, ok := e.lease.Meter(n+e.onLease(k), now); ok {
		if len(ahead) > 0 {
			return l.turn(e, total(ahead)+n, now)
		}
		return e.force().metered(d)
	}
	crowd := time.Duration(0)
	if k&books != 0 && ((e.force().burst-n)*local.Unit < e.root.out || e.root.rates > 0) { // until leases make room for it
		crowd = time.Duration(e.root.lastEnd - now)
	}
	n += l.atRoot(e, k)
	return max(crowd, l.retryAfter(e, n, k, now), l.turn(e, total(ahead)+n, now))
}
