package hybrid

import (
	"context"

	"github.com/resilient-go/limiter/local"
)

// A Priority says how important a request is.
type Priority uint8

const (
	// PriorityNormal is for requests that may use the whole bucket. The default.
	PriorityNormal Priority = iota
	// PriorityLow is for requests that leave the last share of the bucket to the
	// others, see [WithPriorityReserve].
	PriorityLow
)

// DefaultPriorityReserve is the share that [PriorityLow] leaves alone.
const DefaultPriorityReserve = 0.2

// WithPriorityReserve sets which share of a bucket is kept for important requests:
// 0 ≤ f < 1, in thousandths. A request of [PriorityLow] for n tokens passes if the
// bucket has n + ⌊f·burst⌋, so that nothing is kept where f·burst is less than one
// token, and low requests are not shut out of small limits. The same holds for every
// part of the bucket: the lease of an instance, its local share and its part in an
// outage each keep f of what they may hold. The bound on all requests together stays
// what it is. A low request for more than burst − ⌊f·burst⌋ can never pass
// ([ErrExceedsBurst]).
//
// Tell all instances the same. Default: 0.2.
func WithPriorityReserve(f float64) Option { return func(c *config) { c.reserve = f } }

// A kind is what a request is like besides its size.
type kind uint8

const (
	low   kind = 1 << iota // leaves the reserve alone
	holds                  // its tokens may be given back: they are claimed on the lease
	books                  // may take the bucket into a debt of one burst
)

func (p Priority) kind() kind {
	if p == PriorityLow {
		return low
	}
	return 0
}

// thousandths is the reserve as the scripts take it.
func (c *config) thousandths() int64 { return int64(c.reserve*1000 + 1e-6) }

// keep is how many tokens of so many a request leaves alone.
func (l *Limiter) keep(k kind, rights int64) int64 {
	if k&low == 0 {
		return 0
	}
	return max(0, rights) * l.reserve / 1000
}

// atRoot is how many tokens of the root's a request leaves alone, below 0 if it may
// leave a debt. Where leases meter
// themselves the root is what they leave of the bucket.
func (l *Limiter) atRoot(e *entry, k kind) int64 {
	if k == 0 {
		return 0
	}
	burst := e.force().burst
	rights := burst
	if e.root.rates > 0 {
		rights -= (e.root.out + local.Unit - 1) / local.Unit
	}
	return l.keep(k, rights) - k.debt(burst)
}

// debt is how far below nothing a request may take a bucket.
func (k kind) debt(burst int64) int64 {
	if k&books == 0 {
		return 0
	}
	return burst
}

// onLease is how many tokens of the lease a request leaves alone.
func (e *entry) onLease(k kind) int64 {
	if k&low == 0 {
		return 0
	}
	return e.lease.Spare()
}

// atShare is how many tokens of the local share a request leaves alone.
func (l *Limiter) atShare(e *entry, k kind) int64 {
	most := e.force().largest
	return l.keep(k, most) - k.debt(most)
}

// most is the largest request that can ever pass.
func (t *terms) most(k kind) int64 {
	if k&low == 0 {
		return t.largest
	}
	return t.largestLow
}

// takeLow is the rest of [Limiter.Take] for low priority.
func (l *Limiter) takeLow(ctx context.Context, r Request) (res Result, err error) {
	if err := l.checkAny(r); err != nil {
		return l.shadow(Result{}, err)
	}
	now := l.now()
	e, ok := l.keys.Get(r.Key)
	if !ok || !l.atHandLow(&res, e, int64(r.N), now) {
		return l.shadow(l.ask(ctx, e, r, false, now))
	}
	return l.shadow(res, nil)
}

// checkAny is check for any priority.
func (l *Limiter) checkAny(r Request) error {
	if err := l.check(r); err != nil {
		return err
	}
	switch {
	case r.Priority > PriorityLow:
		return ErrInvalidPriority
	case int64(r.N) > l.terms.Load().most(r.Priority.kind()) && !l.mayFit(r):
		return ErrExceedsBurst
	default:
		return nil
	}
}

// atHandLow is atHand for low priority.
func (l *Limiter) atHandLow(res *Result, e *entry, n, now int64) bool {
	if s := e.lowStanding.Load(); s != nil && n == 1 && s.holds(l, e, now) {
		s.tell(res, now)
		res.Remaining = s.res.Remaining
		return true
	}
	if !e.lowly.Load() {
		e.lowly.Store(true)
	}
	if left, due, ok := e.lease.TakeLow(now, n); ok {
		if due {
			l.renew(e, now)
		}
		e.force().admit(res, left+e.hint.Load())
		e.untilReset(res, now)
		return true
	}
	return !l.up(e) && l.alone(res, e, n, low, now)
}
