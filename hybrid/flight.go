package hybrid

import (
	"math"
	"time"

	"github.com/resilient-go/limiter/local"
	"github.com/resilient-go/limiter/remote"
)

// A flight is a message under way and those whose requests it carries.
type flight struct {
	msg      *remote.Message
	waiters  []*waiter
	sent     int64         // instant
	kept     int64         // tokens
	debit    int64         // tokens, of corrections
	until    int64         // instant, of those that are counted in windows
	holds    bool          // what some of the waiters are granted becomes lease
	horizon  int64         // of the key, in nanoseconds
	margin   time.Duration // what the answer takes, as far as is known
	expected float64       // micro-tokens that the root was thought to have, -1 if that was not known
	stale    bool          // the machine slept meanwhile: what it brings has ended
	landed   chan struct{} // closed when it has landed, if somebody waits for that
}

// The sizes of lumps. A lump covers about eight calls, the horizon of a key
// with little demand being stretched until it does; one that would cover fewer
// than four is not worth its price, which is that it may lie idle.
const (
	callsPerLump  = 8
	leastPerLump  = 4
	leastByRate   = 3   // tokens in a horizon that make the rate of a limit worth sharing
	farFromShort  = 0.6 // of the rate: demand
	renewBelow    = 0.2 // of a lump
	leaseUsable   = 0.9 // of the time the root counts the lease for
	denialsSpread = 0.25
)

// message builds the next message of an entry. Its needs come from the queue;
// who cannot be served for want of local share is refused or stays. mu is held.
func (l *Limiter) message(e *entry, now int64) *flight {
	kept, spent, lost := e.lease.Report(now)
	l.counts.expired.Add(uint64(lost))
	e.hold(now, 0)
	l.settle(e)
	f := &flight{sent: now, kept: kept, expected: -1}
	if e.root.known && now-e.root.told <= int64(l.cfg.horizon) { // older news is no news
		f.expected = e.sure(now)
	}
	needs := l.board(e, f)
	reserve := int64(0)
	if e.lowly.Swap(false) { // a lump would be theirs as well
		reserve = l.reserve
	}
	if e.share != nil { // what is asked for may be spent when the answer comes: it is held
		boarded := int64(0)
		for _, w := range f.waiters {
			boarded += w.n
		}
		e.hold(now, boarded)
	}

	l.fold(e)
	asked := e.asked
	l.account(e, spent, kept, now)

	horizon := e.demand.Horizon(l.cfg.horizon, longestHorizon, callsPerLump)
	target := min(int64(math.Ceil(e.demand.PerSecond()*horizon.Seconds())), e.ramp)
	e.ramp = max(2*e.ramp, spent+asked, 1)
	e.ramp = min(e.ramp, e.force().burst)
	want := target - kept
	least := int64(math.Ceil(leastPerLump * e.demand.Size()))
	meters := e.lease.Rate() > 0
	if meters {
		want = max(want, least) // it goes on wanting to
	}
	if e.share != nil {
		want = max(0, min(want, e.share.Level())) // the share may owe something
	}
	if want < least && !meters || !e.tracked || !l.cfg.algorithm.leased() {
		want = 0
	}
	var rate, burst int64
	if (want > 0 || meters) && l.shareable(e, horizon, now) {
		rate, burst = e.force().mostRate, e.force().largest*local.Unit
	}
	ttl := leaseFor(horizon)
	if l.cfg.algorithm == LeakyBucket {
		f.margin = time.Duration(l.rtt.Load())
		ttl = l.booking(f)
	}
	scrap := e.lease.Scrap()
	f.horizon = int64(horizon)
	live, all := l.fleet(now)
	f.debit, f.until = e.takeDebit()
	charge := e.fallback.owed(e, now) + f.debit
	if surplus := charge - 2*e.force().deepest; surplus > 0 {
		l.unaccounted(e, min(surplus, f.debit))
		charge, f.debit = charge-surplus, max(0, f.debit-surplus)
	}
	f.msg = &remote.Message{
		Key: e.key, Limit: e.mine.remote(), Seq: l.seq.Add(1),
		TTL:  ttl,
		Kept: kept*local.Unit + e.lease.Part(), Returned: scrap, Spent: spent * local.Unit,
		Demand: int64(e.demand.PerSecond() * local.Unit),
		Want:   want * local.Unit, Least: least * local.Unit,
		Rate: rate, Burst: burst,
		Charge: charge * local.Unit, Until: windowLeft(f.until, now),
		Live: live, Peak: all,
		Reserve: reserve, Needs: needs,
	}
	if !l.cfg.algorithm.windowed() { // a window ends all at once, and its key with it
		f.msg.Seen, f.msg.Known = e.mustBeThere(now)
	}
	return f
}

// account notes what was asked for since the last message, spent tokens of it
// from the lease, of which that many are left. mu is held.
func (l *Limiter) account(e *entry, spent, left, now int64) {
	passed := e.lease.Calls()
	calls := passed - e.passed
	l.counts.spent.Add(uint64(spent))
	l.counts.left.observe(uint64(calls), e.hint.Load()+left, e.force().burst)
	e.demand.Add(now, spent+e.asked, calls+e.calls)
	e.passed, e.asked, e.calls = passed, 0, 0
}

// shareable reports whether a part of the rate would last: in a horizon it is
// worth a few tokens. A stretched horizon will do where nobody is short by far,
// since what idles here for so long is a large part of a small limit. The root
// knows of holders only: that others ask as well shows in its refusals.
func (l *Limiter) shareable(e *entry, horizon time.Duration, now int64) bool {
	if l.cfg.algorithm != TokenBucket || l.cfg.tiers != nil {
		return false
	}
	perSecond := e.force().rate.PerSecond()
	if perSecond*l.cfg.horizon.Seconds() >= leastByRate {
		return true
	}
	if e.refused != 0 && now-e.refused < int64(horizon) {
		return false
	}
	asked := math.Max(float64(e.root.demand)/local.Unit, e.demand.PerSecond())
	return perSecond*horizon.Seconds() >= leastByRate && e.rivals <= 1 && asked <= farFromShort*perSecond
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
		need := remote.Need{Tokens: w.n * local.Unit, Queue: w.patient, Low: w.kind&low != 0, Hold: w.kind&holds != 0, Book: w.kind&books != 0}
		fits := last >= 0 && needs[last].Like(need)
		if !fits && len(needs) == remote.MaxNeeds {
			stay = append(stay, e.queue[i:]...)
			break
		}
		if held || e.share != nil && !e.afford(w.n, l.atShare(e, w.kind), w.kind) {
			if w.patient {
				held = true
				stay = append(stay, w)
			} else {
				l.decide(e, w, e.force().refuse(SourcePrefilter, 0, l.shareHas(e, w.n+l.atShare(e, w.kind), f.sent)))
			}
			continue
		}
		if fits {
			needs[last].Count++
		} else {
			need.Count = 1
			needs = append(needs, need)
		}
		f.waiters = append(f.waiters, w)
		f.holds = f.holds || w.kind&holds != 0
		if !w.boarded {
			w.boarded = true
			if w.kind&low == 0 {
				e.note(w.n)
			}
		}
	}
	e.queue = stay
	return needs
}

// afford charges n tokens to the local share if so many are left besides.
func (e *entry) afford(n, keep int64, k kind) bool {
	if k&books != 0 {
		if e.share.Level() < n+keep {
			return false
		}
		e.share.Owe(n)
		return true
	}
	return (keep == 0 || e.share.Level() >= n+keep) && e.share.Take(n)
}

// send hands a message to the remote client. mu is held.
func (l *Limiter) send(e *entry, f *flight) {
	l.members.begin(l)
	e.flight = f
	e.withdraw()
	e.lease.Quiet()
	l.flights.add()
	err := e.lane.Load().root.Acquire(f.msg, func(a remote.Answer, err error) {
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
		if f.holds { // what is theirs is taken out before anybody else can
			e.claiming = true
			e.lease.Shut(true)
		}
		l.apply(e, f, a, now)
		if f.stale {
			l.drop(e, now)
		}
		l.distribute(e, f, a, now)
		if f.holds {
			e.claiming = false
			e.lease.Shut(e.queued > 0)
		}
	}
	if f.msg.Limit != e.mine.remote() { // the limit was changed meanwhile
		e.lease.Hurry()
	}
	l.weed(e)
	if err == nil {
		l.counts.returned.Add(uint64(f.msg.Returned / local.Unit))
		if e.share != nil {
			e.share.Restore(f.msg.Returned)
		}
	}
	if f.landed != nil {
		close(f.landed)
	}
	switch {
	case l.closed.Load():
		l.dismiss(e, now)
	case err != nil:
		l.degradeQueue(e, now)
	default:
		l.pump(e, now)
		l.own(e, now)
		l.payUp(e, now)
	}
	if e.mine.fixed() && e.flight == nil { // the limit was changed meanwhile
		l.handBack(e, now)
	}
}

// failed takes back the requests of a message that has no answer. mu is held.
func (l *Limiter) failed(e *entry, f *flight, err error) {
	class := remote.ClassOf(err)
	e.lane.Load().failed(e.key, err)
	if class.KeyOnly() { // the others are well: this one is left alone for a while
		e.badUntil = l.now() + int64(l.cfg.horizon)
	}
	l.counts.expired.Add(uint64(f.msg.Returned / local.Unit)) // free when the lease ends
	l.undelivered(e, f.debit, f.until, class)
	if class.Misconfigured() && !l.closed.Load() {
		l.reportMisconfigured(class, e.key, err)
	}
	e.hold(l.now(), 0)
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
