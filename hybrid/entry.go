package hybrid

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/resilient-go/limiter/internal/inside"
	"github.com/resilient-go/limiter/local"
	"github.com/resilient-go/limiter/remote"
)

// An entry is what this instance knows of one key.
//
// The lease, hint and terms may be used by anybody, and so may what
// decides when the user's function is asked; all else belongs to mu.
// Nothing blocks while mu is held: messages are handed to the remote client,
// which answers on a goroutine of its own.
type entry struct {
	hint                atomic.Int64             // whole tokens at the root when it was last heard of
	resetAt             atomic.Int64             // of a timed root: the instant at which all is free
	terms               atomic.Pointer[terms]    // in force; changed under mu
	lane                atomic.Pointer[lane]     // of its master; changed under mu
	standing            atomic.Pointer[standing] // nil: none; changed under mu
	lease               local.Lease
	denied, prefiltered atomic.Uint64            // requests for one token, refused without taking mu
	lowStanding         atomic.Pointer[standing] // for requests of low priority; changed under mu
	lowly               atomic.Bool              // some of those were made since the last message

	mu      sync.Mutex
	key     string      // in Redis
	tracked bool        // it is in the table; others live for one request
	dead    bool        // it was retired: look the key up again
	handled atomic.Bool // somebody has a handle: the table does not see its use
	used    int64       // calls that the table did not see, when it last asked
	mine    *terms      // what this instance asks for; another instance's may be in force
	user    string      // the key, as its user has it, if there are rules
	named   bool        // the limit is one for this key, not the limiter's own
	rules   *rules      // nil: nobody is asked for the limit of this key

	queue  []*waiter // who waits for a decision, in order of arrival
	queued int       // how many of those, and of those in flight, are patient
	flight *flight   // the message under way, nil if there is none
	timer  inside.Timer

	claim    claim // the last one that was made
	debit    int64 // tokens by which the root is to be charged, or to be given some, with the next message
	until    int64 // instant at which the window ends that what is given back was counted in; 0: there is none
	unpaid   int64 // tokens by which it was to be charged and was not, beyond its debt
	claiming bool  // an answer brings tokens that are somebody's: nobody takes them before

	root   rootView
	share  *local.Share // nil: the whole limit
	demand local.Demand
	ramp   int64 // the largest lump to ask for: doubles from message to message
	asked  int64 // tokens asked for otherwise than from the lease since the last
	calls  int64 // message, and in how many calls
	passed int64 // calls served from the lease when the last message was sent
	active int64 // when something was last asked, for the sweeper
	seen   int64
	noted  int64 // turned away when the last message was sent

	refused int64   // when the root last said no, 0 if never
	rivals  float64 // for how much longer than due to stay away after a refusal: others come first

	careful   int64   // instant until which it takes its part only, whatever its lane says
	capped    bool    // the share is that of an outage that is just over
	part      float64 // of the limit, for an outage that begins before partUntil
	partUntil int64

	nearUntil int64 // NearLimit was told, and is not again before this instant
	badUntil  int64 // the key is at fault, not Redis: it is degraded until this instant

	own      fallback
	fallback *fallback
}

// rootView is the root as it was last told.
type rootView struct {
	known   bool
	tokens  int64 // micro-tokens
	out     int64
	lastEnd int64 // instant
	at      int64 // instant: the script ran no earlier,
	told    int64 // and no later than this one
	rates   int64 // micro-tokens per second that the leases earn by themselves
	demand  int64 // micro-tokens per second that their holders see
	until   int64 // the root said no: nobody asks again before this instant,
	// nobody of low priority and nobody who books ahead before these
	lowUntil, bookUntil int64

	// Of a timed root:
	fits  []fit // what it said of those it refused
	reset int64 // instant: all is free if nobody asks

	tiers []int64 // micro-tokens, if there are further ones: of the first and of these
}

func newRootView(level remote.Level, sent, now int64) rootView {
	r := rootView{
		known: true, tokens: level.Tokens, out: level.Out, rates: level.Rates, demand: level.Demand,
		lastEnd: now + int64(level.LastEnd), at: sent, told: now, reset: now + int64(level.Reset),
	}
	if level.Fits > 0 {
		r.fits = []fit{{1, level.Fits}}
	}
	return r
}

func (l *Limiter) newEntry(key string, tracked bool) *entry {
	t, named := l.termsFor(key)
	e := &entry{key: l.cfg.redisKey(key), tracked: tracked, mine: t, named: named}
	if l.cfg.rules != nil {
		e.user = key
	}
	e.terms.Store(t)
	e.lane.Store(l.laneOf(e.key))
	e.hint.Store(t.burst)
	if l.cfg.limitOf != nil {
		e.rules = newRules(key)
	}
	e.fallback = &e.own
	if !tracked {
		e.fallback = &l.spill[l.keys.Bucket(key, len(l.spill))]
	}
	e.own.limiter = l
	if !t.fixed() {
		e.shareOut(l, t)
	}
	return e
}

// shareOut gives the entry the local share that goes with its terms.
func (e *entry) shareOut(l *Limiter, t *terms) {
	if l.cfg.share == 1 || !e.tracked {
		return
	}
	rate, burst := l.cfg.share*t.rate.PerSecond(), math.Max(1, l.cfg.share*float64(t.burst))
	if e.share != nil {
		e.share.Advance(l.now())
		e.share.Reshape(rate, burst)
		return
	}
	s := local.NewShare(rate, burst, l.now())
	e.share = &s
}

// hold brings the local share to now, with what the lease holds and earns, and so
// many tokens besides, from then on. mu is held.
func (e *entry) hold(now, besides int64) {
	if e.share == nil {
		return
	}
	e.share.Advance(now)
	e.share.Hold(e.lease.Rights(now) + besides)
	e.share.Lend(e.lease.Rate(), e.lease.End())
}

// asks gives the terms that this instance asks for.
func (e *entry) asks() *terms {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.mine
}

// force gives the terms in force.
func (e *entry) force() *terms { return e.terms.Load() }

// served is how many calls the lease has admitted.
func (e *entry) served() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return uint64(e.lease.Calls())
}

// note counts a request into the demand of the key.
func (e *entry) note(n int64) {
	e.asked += n
	e.calls++
}

// lock locks the entry of a key, which it finds or makes if it is not known, and
// gives the instant, which is now unless that took time.
func (l *Limiter) lock(e *entry, key string, now int64) (*entry, int64) {
	waited := false
	for {
		if e == nil {
			var ok bool
			if e, ok = l.keys.GetOrAdd(key, func() *entry { return l.newEntry(key, true) }); !ok {
				l.overflow()
				e = l.newEntry(key, false)
			}
			waited = true
		}
		if e.rules != nil {
			l.consult(e)
			waited = true
		}
		if !e.mu.TryLock() {
			e.mu.Lock()
			waited = true
		}
		if !e.dead {
			if waited {
				now = l.now()
			}
			return e, now
		}
		e.mu.Unlock()
		e = nil
	}
}

// Retire implements [local.Entry]: an entry goes if nothing is going on and
// forgetting it gives nothing away. Its lease is returned first.
func (e *entry) Retire() bool {
	if !e.mu.TryLock() {
		return false
	}
	defer e.mu.Unlock()
	l := e.own.limiter
	now := l.now()
	if l.closed.Load() || e.flight != nil || len(e.queue) > 0 || !e.own.full(l, e, now) {
		return false
	}
	if uses := e.lease.Calls() + e.turned(); e.handled.Load() && uses != e.used {
		e.used = uses
		return false
	}
	if e.hold(now, 0); e.share != nil && !e.share.Full() {
		return false
	}
	e.dead = true
	e.withdraw()
	e.stopTimer()
	l.giveBack(e, now)
	l.fold(e)
	l.counts.refused[SourceDenied].Add(e.denied.Load())
	l.counts.refused[SourcePrefilter].Add(e.prefiltered.Load())
	l.counts.leasedByEvicted.Add(uint64(e.lease.Calls()))
	return true
}

// bound is the most that the root can hold at now, in micro-tokens, unless
// somebody returned tokens or the bucket was reset.
func (e *entry) bound(now int64) float64 {
	if !e.root.known {
		return float64(e.force().burst * local.Unit)
	}
	if t := e.force(); t.timed {
		return e.root.timedBound(t.burst, now)
	}
	return e.grown(time.Duration(now - e.root.at))
}

// mustBeThere tells what the root has at most besides what is out on lease, if it
// cannot be full even though all of that was returned: then it is still there, or
// was lost.
func (e *entry) mustBeThere(now int64) (tokens int64, sure bool) {
	t := e.force()
	if !e.root.known || t.timed || t.tiers != nil {
		return 0, false
	}
	level := float64(e.root.tokens) + t.rate.In(time.Duration(now-e.root.at))
	if level+float64(e.root.out) >= float64(t.burst*local.Unit) {
		return 0, false
	}
	return int64(math.Ceil(math.Max(0, level))), true
}

// sure is what the root holds at now if nobody else has taken any.
func (e *entry) sure(now int64) float64 {
	if t := e.force(); t.timed {
		return e.root.timedSure(t.burst, now)
	}
	return e.grown(time.Duration(now-e.root.told)-moment) - 1
}

// moment is more than what rounding costs.
const moment = 10 * time.Microsecond

// grown is what the root as it was last told grows to in that time.
func (e *entry) grown(elapsed time.Duration) float64 {
	t := e.force()
	if t.tiers != nil {
		return t.tiersGrown(&e.root, elapsed)
	}
	net := t.rate.In(elapsed) - float64(e.root.rates)*elapsed.Seconds()
	return math.Min(float64(t.burst*local.Unit), float64(e.root.tokens)+math.Max(0, net))
}

// rootHas reports whether the root may have n tokens at now.
func (e *entry) rootHas(n, now int64) bool {
	if e.force().timed {
		at, _ := e.root.notBefore(n)
		return now >= at
	}
	return float64(n*local.Unit) <= e.bound(now)
}

// spare reports whether the root, as it was last told, had left so much over that
// it is worth a call besides the renewals.
func (e *entry) spare(n, keep int64) bool { return e.root.tokens >= (callsPerLump*n+keep)*local.Unit }

// worthACall reports whether the root is asked for n tokens, of which it keeps so many,
// although the lease will earn them: it has much, or gains more than is asked of it, or
// has what nobody else is there to take.
func (e *entry) worthACall(n, keep int64, k kind, now int64) bool {
	switch {
	case e.spare(n, keep):
		return true
	case now < e.silence(k):
		return false
	default:
		return e.plenty() && e.rootHas(n+keep, now) || e.alone() && e.surelyHas(n+keep, now)
	}
}

// plenty reports whether those who share the root ask for less than it gains.
func (e *entry) plenty() bool {
	return float64(e.root.demand) <= e.force().rate.PerSecond()*local.Unit
}

// alone reports whether nobody else has a part of the rate: what the root has left
// is for nobody but this instance, as far as is known.
func (e *entry) alone() bool { return e.root.rates <= e.lease.Rate() }

// surelyHas reports whether the root has n tokens at now if nobody else has taken any.
func (e *entry) surelyHas(n, now int64) bool {
	return float64(n*local.Unit) <= e.grown(time.Duration(now-e.root.told))
}

// Who is refused a token that was due has rivals, and asks the less often the more
// of them there are: this balance has about a quarter of the calls refused.
const (
	moreRivals  = 2.0
	fewerRivals = 0.8
)

// compete learns from an answer how many rivals there are. expected: the root was
// thought to have what was asked for.
func (e *entry) compete(refused, expected bool) {
	switch {
	case !refused:
		e.rivals = math.Max(1, e.rivals*fewerRivals)
	case expected:
		e.rivals = math.Max(1, e.rivals) * moreRivals
	}
}

// retryAfter is when n tokens can be asked for again.
func (l *Limiter) retryAfter(e *entry, n int64, k kind, now int64) time.Duration {
	d := e.force().retryAfter(&e.root, n, now)
	if e.rivals > 1 {
		d = max(d, time.Duration(e.silence(k)-now))
	}
	return d
}

// silence is the instant before which nobody with such a request asks the root.
func (e *entry) silence(k kind) int64 {
	switch {
	case k&books != 0:
		return e.root.bookUntil
	case k&low == 0:
		return e.root.until
	}
	return max(e.root.until, e.root.lowUntil)
}

// hush notes that the root said no to n tokens, and for how long nobody need
// ask: a horizon at most, spread so that instances do not ask together.
func (l *Limiter) hush(e *entry, n int64, k kind, now int64) {
	longest := float64(l.cfg.horizon) * (1 - denialsSpread*l.chance())
	again := float64(e.force().retryAfter(&e.root, n, now)) * math.Max(1, e.rivals)
	until := now + int64(math.Min(again, longest))
	switch {
	case k&books != 0:
		e.root.bookUntil = until
	case k&low != 0:
		e.root.lowUntil = until
	default:
		e.root.until = until
	}
}
