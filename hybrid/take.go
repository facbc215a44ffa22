package hybrid

import (
	"context"
	"time"

	"github.com/resilient-go/limiter/local"
)

// Allow asks for one token of a key. It is shorthand for [Limiter.Take].
func (l *Limiter) Allow(ctx context.Context, key string) (Result, error) {
	return l.Take(ctx, Request{Key: key, N: 1})
}

// AllowN asks for n tokens of a key; 0 only looks. It is shorthand for
// [Limiter.Take].
func (l *Limiter) AllowN(ctx context.Context, key string, n int) (Result, error) {
	return l.Take(ctx, Request{Key: key, N: n})
}

// Take decides a request now, without waiting for tokens. It asks, in this
// order: the permits that this instance holds on lease, and the rate at which
// such a lease earns more; its local share; a refusal of Redis that still stands;
// Redis; and in an outage the outage policy. Only Redis is waited for, for the
// remote time-out at most.
//
// The error is nil unless the request can never be decided: [ErrInvalidKey],
// [ErrInvalidN], [ErrExceedsBurst], [ErrClosed], or the context's own error if it
// had ended when Redis was to be asked, or ended meanwhile. A permit on lease is
// given even then. A refusal is not an error, and neither is an outage. The
// context does not bound how long Redis may take, and its end does not count
// against Redis.
func (l *Limiter) Take(ctx context.Context, r Request) (res Result, err error) {
	if r.N == 0 {
		return l.Peek(ctx, r.Key)
	}
	if r.Priority != PriorityNormal {
		return l.takeLow(ctx, r)
	}
	if err := l.check(r); err != nil {
		return l.shadow(Result{}, err)
	}
	now := l.now()
	e, ok := l.keys.Get(r.Key)
	switch {
	case !ok || !l.atHand(&res, e, int64(r.N), now):
		return l.shadow(l.ask(ctx, e, r, false, now))
	case !res.Allowed && l.cfg.shadow:
		return l.shadow(res, nil)
	default:
		return res, nil
	}
}

// atHand decides a request by what is at hand, without waiting for the lock of its
// key: a lease, or a refusal that stands, or in an outage this instance's part.
func (l *Limiter) atHand(res *Result, e *entry, n, now int64) bool {
	if s := e.standing.Load(); s != nil && n == 1 && s.holds(l, e, now) {
		s.tell(res, now)
		return true
	}
	if left, low, ok := e.lease.Take(now, n); ok {
		if low {
			l.renew(e, now)
		}
		t := e.force()
		t.admit(res, left+e.hint.Load())
		if t.timed || t.tiers != nil {
			e.untilReset(res, now)
		}
		return true
	}
	return !l.up(e) && l.alone(res, e, n, 0, now)
}

// check refuses what can never pass, before anything is spent.
func (l *Limiter) check(r Request) error {
	switch {
	case r.Key == "":
		return ErrInvalidKey
	case r.N < 0:
		return ErrInvalidN
	case int64(r.N) > l.terms.Load().largest && !l.mayFit(r):
		return ErrExceedsBurst
	default:
		return nil
	}
}

// mayFit reports whether the key of a request that is too large for the others
// has another limit, or may have one.
func (l *Limiter) mayFit(r Request) bool {
	if l.cfg.limitOf != nil { // it is asked before the request is refused
		return true
	}
	if e, ok := l.keys.Get(r.Key); ok {
		t := e.force()
		return int64(r.N) <= t.most(r.Priority.kind()) || t.fixed()
	}
	t, _ := l.termsFor(r.Key)
	return int64(r.N) <= t.most(r.Priority.kind()) || t.fixed()
}

// ask decides a request, or waits for Redis to.
func (l *Limiter) ask(ctx context.Context, e *entry, r Request, patient bool, now int64) (Result, error) {
	_, v := l.resolve(ctx, e, r, r.Priority.kind(), patient, now)
	return v.res, v.err
}

// resolve is ask for requests of any kind. It gives the entry that has decided.
func (l *Limiter) resolve(ctx context.Context, e *entry, r Request, k kind, patient bool, now int64) (*entry, verdict) {
	if err := ctx.Err(); err != nil {
		return nil, verdict{err: err}
	}
	deadline := int64(0)
	if d, ok := ctx.Deadline(); ok && patient {
		deadline = int64(d.Sub(l.epoch))
	}
	e, w, v := l.begin(e, r, k, patient, deadline, now)
	if w == nil {
		return e, v
	}
	var timeout <-chan time.Time
	if patient {
		l.counts.waiting.Add(1)
		defer l.counts.waiting.Add(-1)
	} else {
		t := time.NewTimer(l.cfg.timeout)
		defer t.Stop()
		timeout = t.C
	}
	select {
	case v := <-w.done:
		return e, l.await(ctx, v, r.N)
	case <-timeout:
		return e, l.leave(e, w, nil)
	case <-ctx.Done():
		return e, l.leave(e, w, ctx.Err())
	case <-l.closing:
		return e, l.leave(e, w, ErrClosed)
	}
}

// begin decides a request under the lock of its key, or gives the waiter that it
// has become.
func (l *Limiter) begin(e *entry, r Request, k kind, patient bool, deadline, now int64) (*entry, *waiter, verdict) {
	n := int64(r.N)
	e, now = l.lock(e, r.Key, now)
	defer e.mu.Unlock()
	if !e.tracked || !l.cfg.algorithm.leased() {
		k &^= holds // there is no lease to hold them
	}
	if l.cfg.algorithm != TokenBucket || l.cfg.tiers != nil {
		k &^= books // what is owed would not be paid at a rate
	}
	if l.closed.Load() {
		return e, nil, verdict{err: ErrClosed}
	}
	t := e.force()
	if n > t.most(k) && n <= e.mine.most(k) && now-e.root.told >= int64(leaseFor(l.cfg.horizon)) {
		t = e.mine // the limit of another instance, of which nothing was heard for so long
		l.adopt(e, t, now)
	}
	if n > t.most(k) && !(t.fixed() && !patient) {
		return e, nil, verdict{err: ErrExceedsBurst}
	}
	e.active = now
	if k&low != 0 {
		e.lowly.Store(true)
	}
	if e.flight == nil {
		l.route(e, now)
		l.mind(e, now)
	}
	e.claim = claim{}
	if res, ok := l.atOnce(e, n, k, now); ok && (res.Allowed || !patient) {
		if t.timed || t.tiers != nil {
			e.untilReset(&res, now)
		}
		l.record(e, n, k, res)
		l.own(e, now)
		return e, nil, verdict{res: res, claim: e.claim}
	}
	w := &waiter{n: n, kind: k, patient: patient, deadline: deadline, done: make(chan verdict, 1)}
	l.join(e, w, now)
	return e, w, verdict{}
}

// atOnce takes a request through the steps that need no network, if nobody is
// before it. mu is held.
func (l *Limiter) atOnce(e *entry, n int64, k kind, now int64) (Result, bool) {
	switch t := e.force(); {
	case t.fixed():
		return t.rule(), true
	case len(e.queue) > 0 || e.queued > 0:
		return Result{}, false
	case e.flight == nil:
		s := l.step(e, n, n+l.atRoot(e, k), k, now)
		switch {
		case s.next != decided:
		case s.res.Source == SourceLease:
			e.claimed(n, k)
			l.renewLocked(e, now)
		case n == 1 && !s.res.Allowed && k&books == 0:
			l.stand(e, s, k, now)
		}
		return s.res, s.next == decided
	case e.lease.TakeLateAbove(now, n, e.onLease(k)):
		e.claimed(n, k)
		return e.force().allow(SourceLease, e.lease.Balance(now)+e.hint.Load()), true
	case !l.up(e):
		return l.degrade(e, n, k, now), true // the message was sent before; nobody waits for its end
	default:
		return Result{}, false
	}
}

// A step is how far a request comes without the network.
type step struct {
	next next
	res  Result        // if decided
	wake time.Duration // if refused: when a patient one tries again
}

type next uint8

const (
	decided next = iota
	askRoot
	giveWay // the own lease is in the way of a request: it is to be returned
)

// step takes a request down the ladder: the lease, its rate, the local share,
// the outage policy, a standing refusal of the root, and then the root. mu is
// held and no message is under way. reach is what the root must have.
func (l *Limiter) step(e *entry, n, reach int64, k kind, now int64) step {
	refused := func(src Source, remaining int64, retry, wake time.Duration) step {
		return step{decided, e.force().refuse(src, remaining, retry), wake}
	}
	e.hold(now, 0)
	onLease, atRoot, atShare := e.onLease(k), l.atRoot(e, k), l.atShare(e, k)
	earned, meters := e.lease.Meter(n+onLease, now)
	switch {
	case e.lease.TakeLateAbove(now, n, onLease):
		return step{decided, e.force().allow(SourceLease, e.lease.Balance(now)+e.hint.Load()), 0}
	case k&(low|books) == 0 && l.up(e) && e.hampers(n, meters && !e.lease.Paused(), now):
		return step{next: giveWay}
	case meters && !e.lease.Paused() && k&books == 0:
		if l.up(e) && (e.lease.Due(now) || e.worthACall(n, atRoot, k, now)) {
			return step{next: askRoot}
		}
		return refused(SourceDenied, e.lease.Balance(now), e.force().metered(earned), earned)
	case e.share != nil && e.share.Level() < n+atShare:
		d := l.shareHas(e, n+atShare, now)
		return refused(SourcePrefilter, 0, d, d)
	case !l.up(e) || now < e.badUntil:
		res := l.degrade(e, n, k, now)
		return step{decided, res, res.RetryAfter}
	case k&low == 0 && l.inTheWay(e, n, now):
		return step{next: giveWay}
	case now < e.silence(k) && (e.rivals > 1 || !e.rootHas(reach, now)):
		return refused(SourceDenied, int64(e.bound(now))/local.Unit, l.retryAfter(e, n+atRoot, k, now), l.wakeAfter(e, reach, k, now))
	default:
		return step{next: askRoot}
	}
}

// inTheWay reports whether the root can never have n tokens while this instance
// holds its lease.
func (l *Limiter) inTheWay(e *entry, n, now int64) bool {
	rights := e.lease.Rights(now)
	return rights > 0 && n+rights > e.force().burst
}

// join puts a request at the end of the queue of its key. mu is held.
func (l *Limiter) join(e *entry, w *waiter, now int64) {
	e.queue = append(e.queue, w)
	e.withdraw()
	if w.patient {
		e.queued++
		e.lease.Shut(true) // nobody overtakes
	}
	switch {
	case e.flight == nil:
		l.pump(e, now)
	case l.up(e) || w.patient:
	case e.queued == 0:
		l.degradeQueue(e, now)
	default: // those before it wait for the end of a message; it does not
		e.queue = e.queue[:len(e.queue)-1]
		l.decide(e, w, e.force().refuse(SourceDegraded, 0, l.turn(e, total(e.queue)+w.n, now)))
	}
}

// pump moves the queue of a key. Afterwards it is empty, or a message is under
// way, or a timer is set. mu is held and no message is under way.
func (l *Limiter) pump(e *entry, now int64) {
	l.route(e, now)
	l.mind(e, now)
	for len(e.queue) > 0 {
		w := e.queue[0]
		t := e.force()
		switch {
		case t.fixed() && (t.limit == Unlimited || !w.patient): // the limit was changed
			e.queue = e.queue[1:]
			l.decide(e, w, t.rule())
			continue
		case w.n > t.most(w.kind):
			e.queue = e.queue[1:]
			l.finish(e, w, verdict{err: ErrExceedsBurst})
			continue
		}
		s := l.step(e, w.n, l.reach(e, w.n, w.patient)+l.atRoot(e, w.kind), w.kind, now)
		switch {
		case s.next == askRoot:
			l.send(e, l.message(e, now))
			return
		case s.next == giveWay:
			l.send(e, &flight{msg: l.returning(e, now), sent: now})
			return
		case w.patient && !s.res.Allowed:
			l.block(e, s.res.Source, s.wake, now)
			return
		}
		e.queue = e.queue[1:]
		l.decide(e, w, s.res)
	}
	e.stopTimer()
}

// renew asks for a new lump while there is still something to spend.
func (l *Limiter) renew(e *entry, now int64) {
	if !l.up(e) {
		return
	}
	l.consult(e)
	e.mu.Lock()
	defer e.mu.Unlock()
	l.renewLocked(e, now)
}

func (l *Limiter) renewLocked(e *entry, now int64) {
	if e.dead || e.flight != nil || !e.lease.Due(now) || !l.up(e) || l.closed.Load() {
		return
	}
	e.active = now
	l.route(e, now)
	l.mind(e, now)
	l.send(e, l.message(e, now))
}
