package hybrid

import (
	"context"
	"math"
)

// A claim says how to put back what a request was admitted with. The zero claim is
// of something that cannot be put back.
type claim struct {
	epoch uint64 // of the lease
	held  bool   // the tokens are claimed on the lease
	due   int64  // of a reservation: the instant at which it falls due
}

// claimed makes a claim of n tokens that were just taken from the lease, if the
// request is of that kind. mu is held.
func (e *entry) claimed(n int64, k kind) {
	if k&holds != 0 {
		e.claim = claim{epoch: e.lease.Claim(n), held: true}
	}
}

// A taken is an admission that may be undone.
type taken struct {
	l     *Limiter
	e     *entry
	n     int64
	res   Result
	claim claim
	at    int64 // instant, of the outage policy
}

// claim is Take for a request that may be undone.
func (l *Limiter) claim(ctx context.Context, r Request) (taken, error) {
	now := l.now()
	e, ok := l.keys.Get(r.Key)
	if ok {
		if res, refused := l.turnedAway(e, r, now); refused {
			res, err := l.shadow(res, nil)
			return taken{res: res}, err
		}
	}
	e, v := l.resolve(ctx, e, r, r.Priority.kind()|holds, false, now)
	res, err := l.shadow(v.res, v.err)
	t := taken{l: l, e: e, n: int64(r.N), res: res, claim: v.claim, at: l.now()}
	if err != nil || res.Shadow {
		t.n = 0 // it has nothing
	}
	return t, err
}

// turnedAway reports whether a refusal stands for a request, and counts it then.
func (l *Limiter) turnedAway(e *entry, r Request, now int64) (res Result, refused bool) {
	s := e.standing.Load()
	if r.Priority == PriorityLow {
		s = e.lowStanding.Load()
	}
	if s == nil || r.N != 1 || !s.holds(l, e, now) {
		return res, false
	}
	s.tell(&res, now)
	return res, true
}

// commit makes an admission final.
func (t *taken) commit() {
	if t.n > 0 && t.claim.held {
		t.e.mu.Lock()
		t.e.lease.Commit(t.n, t.l.now(), t.claim.epoch)
		t.e.mu.Unlock()
	}
}

// release undoes an admission. What cannot be put back is counted as lost: it was
// granted by Redis for a key that has no lease, or the lease has ended.
func (t *taken) release() {
	if t.n == 0 || !t.res.Allowed {
		return
	}
	t.e.mu.Lock()
	defer t.e.mu.Unlock()
	now := t.l.now()
	back := int64(0)
	switch {
	case t.res.Source == SourceRule, t.res.Source == SourceDegraded && t.l.cfg.policy != Share:
		return
	case t.res.Source == SourceDegraded:
		back = t.e.fallback.putBack(t.n, int64(t.res.Remaining), t.at, now)
		t.e.withdraw()
	case t.claim.held && t.e.lease.Release(t.n, now, t.claim.epoch):
		back = t.n
		t.e.withdraw()
		t.l.sweeper.start(t.l)
	}
	t.l.counts.lost.Add(uint64(t.n - back))
}

// putBack gives the degraded bucket back what was taken from it a while ago, when so
// many tokens were left, and says how many it were. What would have overflowed
// meanwhile is gone: given back, it would come on top of what was gained in its place.
func (f *fallback) putBack(n, left, at, now int64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.quota == nil || len(f.quota.Others()) > 0 { // of tiers each would overflow at another time
		return 0
	}
	gained := math.Ceil(f.shape.perSecond * float64(max(0, now-at)) / 1e9)
	back := f.quota.Give(max(0, min(n, f.shape.burst-left-int64(math.Min(gained, exact)))), now)
	f.taken = max(0, f.taken-back)
	return back
}
