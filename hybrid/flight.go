package hybrid

import (
	"math"
	"time"

	"github.com/resilient-go/limiter/local"
	"github.com/resilient-go/limiter/remote"
)

// A flight is a message under way and those whose requests it carries.
type flight struct {
	msg     *remote.Message
	waiters []*waiter
	sent    int64 // instant
	kept    int64 // tokens
	horizon int64 // of the key, in nanoseconds
}

// The sizes of lumps. A lump covers about eight calls, the horizon of a key
// with little demand being stretched until it does; one that would cover fewer
// than four is not worth its price, which is that it may lie idle.
const (
	callsPerLump  = 8
	leastPerLump  = 4
	renewBelow    = 0.2 // of a lump
	leaseUsable   = 0.9 // of the time the root counts the lease for
	denialsSpread = 0.25
)

// message builds the next message of an entry. Its needs come from the queue;
// who cannot be served for want of local share is refused or stays. mu is held.
func (l *Limiter) message(e *entry, now int64) *flight {
	kept, spent, lost := e.lease.Report(now)
	l.counts.expired.Add(uint64(lost))
	if e.share != nil {
		e.share.Advance(now)
		e.share.Hold(e.lease.Rights(now))
	}
	l.settle(e)
	f := &flight{sent: now, kept: kept}
	needs := l.board(e, f)
	if e.share != nil { // what is asked for may be spent when the answer comes: it is held
		boarded := int64(0)
		for _, w := range f.waiters {
			boarded += w.n
		}
		e.share.Hold(e.lease.Rights(now) + boarded)
	}

	passed, asked := e.leased.Load(), e.asked
	e.demand.Add(now, spent+asked, int64(passed-e.passed)+e.calls)
	e.passed, e.asked, e.calls = passed, 0, 0

	horizon := e.demand.Horizon(l.cfg.horizon, longestHorizon, callsPerLump)
	target := min(int64(math.Ceil(e.demand.PerSecond()*horizon.Seconds())), e.ramp)
	e.ramp = max(2*e.ramp, spent+asked, 1)
	e.ramp = min(e.ramp, l.units.burst)
	want := target - kept
	if e.share != nil {
		want = min(want, e.share.Level())
	}
	least := int64(math.Ceil(leastPerLump * e.demand.Size()))
	if e.lease.Rate() > 0 {
		want = max(want, least) // it meters itself, and goes on wanting to
	}
	var rate, burst int64
	if want < least || !e.tracked {
		want = 0
	} else {
		rate, burst = l.mostRate, l.largest*local.Unit
	}
	f.horizon = int64(horizon)
	f.msg = &remote.Message{
		Key: e.key, Limit: l.units.remote(), Seq: l.seq.Add(1),
		TTL:  leaseFor(horizon),
		Kept: kept*local.Unit + e.lease.Part(), Spent: spent * local.Unit,
		Demand: int64(e.demand.PerSecond() * local.Unit),
		Want:   want * local.Unit, Least: least * local.Unit,
		Rate: rate, Burst: burst,
		Needs: needs,
	}
	return f
}

// board moves waiters from the queue into a flight, as runs of equal needs.
func (l *Limiter) board(e *entry, f *flight) []remote.Need {
	var (
		needs []remote.Need
		stay  []*waiter
		held  bool // a patient one waits for local share: nobody passes
	)
	for i, w := range e.queue {
		last := len(needs) - 1
		fits := last >= 0 && needs[last].Tokens == w.n*local.Unit && needs[last].Queue == w.patient
		if !fits && len(needs) == remote.MaxNeeds {
			stay = append(stay, e.queue[i:]...)
			break
		}
		if held || e.share != nil && !e.share.Take(w.n) {
			if w.patient {
				held = true
				stay = append(stay, w)
			} else {
				l.decide(e, w, l.refuse(SourcePrefilter, 0, e.share.RetryAfter(w.n)))
			}
			continue
		}
		if fits {
			needs[last].Count++
		} else {
			needs = append(needs, remote.Need{Tokens: w.n * local.Unit, Count: 1, Queue: w.patient})
		}
		f.waiters = append(f.waiters, w)
		if !w.boarded {
			w.boarded = true
			e.note(w.n)
		}
	}
	e.queue = stay
	return needs
}

// apply takes in the lease that an answer describes. mu is held.
func (l *Limiter) apply(e *entry, f *flight, a remote.Answer, now int64) {
	total := a.Lump / local.Unit
	granted := max(0, total-f.kept)
	low := int64(0)
	switch {
	case granted > 0:
		l.counts.grants.Add(1)
		l.counts.granted.Add(uint64(granted))
		lead := 2 * e.demand.PerSecond() * time.Duration(l.rtt.Load()).Seconds()
		low = int64(math.Ceil(math.Max(renewBelow*float64(total), math.Min(lead, float64(total)/2))))
	case f.msg.Want == 0 && total > 0:
		low = int64(math.Ceil(renewBelow * float64(total)))
	}
	// Without a grant the root is short: spend what is held, then ask exactly.
	ttl := int64(a.TTL)
	opens := f.sent + ttl/2
	if a.Rate > 0 {
		opens = f.sent + f.horizon // others may need more of the rate by then, or less
	}
	lost := e.lease.Grant(f.kept, total, opens, f.sent+int64(float64(ttl)*leaseUsable), low)
	l.counts.expired.Add(uint64(lost))
	e.lease.Metered(a.Rate, a.Burst, f.sent, now)
	if e.share != nil {
		e.share.Advance(now)
		e.share.Take(granted)
		e.share.Hold(e.lease.Rights(now))
	}
	l.settle(e)
	e.root = rootView{
		known: true, tokens: a.Tokens, out: a.Out, lastEnd: now + int64(a.LastEnd), at: f.sent, told: now,
		rates: a.Rates,
	}
	e.hint.Store(max(0, a.Tokens/local.Unit))
	e.fallback.heard()
	if !e.lease.Idle() {
		l.sweeper.start(l)
	}
	rtt := now - f.sent
	l.rtt.Store((l.rtt.Load()*7 + rtt) / 8)
}

// send hands a message to the remote client. mu is held.
func (l *Limiter) send(e *entry, f *flight) {
	e.flight = f
	e.lease.Quiet()
	l.flights.add()
	err := l.redis.Acquire(f.msg, func(a remote.Answer, err error) {
		defer l.flights.done()
		e.mu.Lock()
		defer e.mu.Unlock()
		l.land(e, f, a, err)
	})
	if err != nil {
		l.flights.done()
		l.land(e, f, remote.Answer{}, err)
	}
}

// land takes in the outcome of a message. mu is held.
func (l *Limiter) land(e *entry, f *flight, a remote.Answer, err error) {
	now := l.now()
	e.flight = nil
	if err != nil {
		l.failed(e, f, err)
	} else {
		l.apply(e, f, a, now)
		l.distribute(e, f, a, now)
	}
	switch {
	case l.closed.Load():
		l.dismiss(e, now)
	case err != nil:
		l.degradeQueue(e, now)
	default:
		l.counts.returned.Add(uint64(f.msg.Returned / local.Unit))
		if e.share != nil {
			e.share.Give(f.msg.Returned / local.Unit)
		}
		l.pump(e, now)
	}
}

// failed takes back the requests of a message that has no answer. mu is held.
func (l *Limiter) failed(e *entry, f *flight, err error) {
	class := classOf(err)
	l.suspect.Store(&e.key)
	l.counts.expired.Add(uint64(f.msg.Returned / local.Unit)) // free when the lease ends
	if class.Misconfigured() && !l.closed.Load() {
		l.reportMisconfigured(class, err)
	}
	if e.share != nil {
		now := l.now()
		e.share.Advance(now)
		e.share.Hold(e.lease.Rights(now))
	}
	back := f.waiters[:0]
	for _, w := range f.waiters {
		if e.share != nil {
			e.share.Give(w.n)
		}
		if class.Unknown() {
			l.counts.lost.Add(uint64(w.n))
		}
		if !w.gone {
			back = append(back, w)
		}
	}
	e.queue = append(back, e.queue...)
}

// distribute hands an answer out to those it is for. The patient ones among the
// refused go back to the head of the queue. mu is held.
func (l *Limiter) distribute(e *entry, f *flight, a remote.Answer, now int64) {
	// Redis decided one after the other: the first of those admitted saw what the
	// later ones took.
	remaining := e.hint.Load() + e.lease.Balance(now)
	for i, need := range f.msg.Needs {
		remaining += a.Granted[i] * need.Tokens / local.Unit
	}
	var (
		refused []*waiter
		least   int64 // the smallest refused request
		spare   int64 // charged for callers who have left
		next    = f.waiters
	)
	for i, need := range f.msg.Needs {
		run, n := next[:need.Count], need.Tokens/local.Unit
		next = next[need.Count:]
		for _, w := range run[:a.Granted[i]] {
			remaining -= n
			if w.gone {
				spare += n
			} else {
				l.decide(e, w, l.allow(SourceRedis, remaining))
			}
		}
		for _, w := range run[a.Granted[i]:] {
			if e.share != nil {
				e.share.Give(n)
			}
			if least == 0 || n < least {
				least = n
			}
			if !w.gone {
				refused = append(refused, w)
			}
		}
	}
	if least > 0 {
		l.hush(e, least, now)
	}
	// What was charged for those who left goes to the next in line at once, or is
	// lost: returned later, it might come on top of what the root has refilled.
	var back []*waiter
	for _, w := range refused {
		switch {
		case len(back) == 0 && w.n <= spare:
			spare -= w.n
			l.decide(e, w, l.allow(SourceRedis, remaining))
		case w.patient:
			back = append(back, w)
		default:
			l.decide(e, w, l.refuse(SourceRedis, remaining, l.nextTry(e, back, w.n, now)))
		}
	}
	l.counts.lost.Add(uint64(spare))
	e.queue = append(back, e.queue...)
}

// settle counts what the lease has earned by its rate, and charges it to the
// local share. mu is held.
func (l *Limiter) settle(e *entry) {
	n := e.lease.Earned()
	l.counts.granted.Add(uint64(n))
	if e.share != nil {
		e.share.Take(min(n, e.share.Level()))
	}
}

// metered is what a caller is told to wait for what takes d where leases are
// about. A lease may be returned meanwhile, and on the way the root, which counts
// whole microseconds, may lose a few of them and a few micro-tokens.
func (l *Limiter) metered(d time.Duration) time.Duration {
	d += time.Duration(32*1000/l.units.rate.PerSecond()) + 4*time.Microsecond - 1
	return d - d%time.Microsecond
}

// nextTry is when n tokens can be had after a refusal of the root: from the
// lease's own rate, or from the root.
func (l *Limiter) nextTry(e *entry, ahead []*waiter, n, now int64) time.Duration {
	if d, ok := e.lease.Meter(n, now); ok {
		if len(ahead) > 0 {
			return l.turn(e, ahead, n, now)
		}
		return l.metered(d)
	}
	return max(l.retryAfter(e, n, now), l.turn(e, ahead, n, now))
}
