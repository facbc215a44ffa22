package lua_test

import (
	"maps"
	"math/big"
	"slices"
)

// A reference is the bucket of bucket.lua in exact arithmetic, without a thought
// for how it is stored.
type reference struct {
	limit   limit    // stored: it applies
	asked   limit    // by the message at hand
	stands  int64    // until when the stored limit stands although another was asked for; 0: it was asked for
	tokens  *big.Rat // micro-tokens
	at      int64    // when there were these tokens
	leases  map[string]held
	lastEnd int64 // all leases have ended then; 0: there is none
	sweepAt int64
	saves   int64 // until when nothing is lent, for somebody who waits for much
}

// held is the recorded lease of a holder.
type held struct{ seq, lump, till, length, demand int64 }

const (
	longest = 30_000_000
	pause   = 100_000
)

func newReference(l limit, now int64) *reference {
	return &reference{limit: l, asked: l, tokens: rat(l.burst), at: now, leases: map[string]held{}}
}

func rat(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

func floor(r *big.Rat) int64 { return new(big.Int).Div(r.Num(), r.Denom()).Int64() }

func (r *reference) out() (sum int64) {
	for _, l := range r.leases {
		sum += l.lump
	}
	return sum
}

func (r *reference) demand() (sum int64) {
	for _, l := range r.leases {
		sum += l.demand
	}
	return sum
}

// beats reports whether a limit applies rather than another one that is asked for
// at the same time.
func (l limit) beats(o limit) bool {
	if l.version != o.version {
		return l.version > o.version
	}
	if slower := l.rate().Cmp(o.rate()); slower != 0 {
		return slower < 0
	}
	return l.burst < o.burst
}

// govern gives the limit that applies when l is asked for, and until when it
// stands if it is another one. A grace of 0 starts none.
func (r *reference) govern(l limit, now, grace int64) (applies limit, stands int64) {
	fresh := r.stands == 0 || r.stands > now+longest
	switch {
	case l == r.limit || !r.limit.beats(l) || !fresh && r.stands <= now:
		return l, 0
	case fresh && grace > 0:
		return r.limit, now + grace
	default:
		return r.limit, r.stands
	}
}

// from is the bucket as a message with this limit finds it. The bucket itself
// does not change.
func (r *reference) from(l limit, now, grace int64) *reference {
	n := &reference{asked: l, tokens: r.tokens, at: r.at, leases: maps.Clone(r.leases), lastEnd: min(r.lastEnd, now+longest), sweepAt: r.sweepAt}
	n.limit, n.stands = r.govern(l, now, grace)
	if n.limit != r.limit {
		n.tokens = rat(max(floor(n.tokens), -n.limit.burst))
	}
	n.saves = min(r.saves, now+longest+n.paid())
	if n.at > now {
		n.sweepAt = now
	}
	if n.lastEnd > 0 && n.lastEnd <= now {
		n.accrue(max(n.at, n.lastEnd))
		n.leases, n.lastEnd, n.sweepAt = map[string]held{}, 0, 0
	}
	n.accrue(now)
	return n
}

// paid is how long the debt takes at the rate.
func (r *reference) paid() int64 {
	debt := max(0, -floor(r.tokens))
	return ceil(new(big.Rat).Quo(rat(debt), r.limit.rate()))
}

func (r *reference) accrue(now int64) {
	gain := rat(max(0, now-r.at))
	gain.Mul(gain, r.limit.rate())
	sum := new(big.Rat).Add(r.tokens, gain)
	if room := rat(max(0, r.limit.burst-r.out())); sum.Cmp(room) > 0 {
		sum = room
	}
	r.tokens, r.at = sum, now
}

func (r *reference) add(n int64) { r.tokens = new(big.Rat).Add(r.tokens, rat(n)) }

// tidy: without leases there are no times to keep, and none that are over.
func (r *reference) tidy(now int64) {
	if r.saves <= now {
		r.saves = 0
	}
	if len(r.leases) == 0 {
		r.lastEnd, r.sweepAt = 0, 0
	}
}

// sweep drops the leases of others that have ended, when it is time to.
func (r *reference) sweep(own string, now int64) {
	if r.lastEnd == 0 || r.sweepAt > now && r.sweepAt <= now+longest {
		return
	}
	soonest := now + longest
	for id, l := range r.leases {
		switch {
		case id == own:
		case l.till <= now:
			delete(r.leases, id)
		default:
			l.till = min(l.till, now+l.length)
			r.leases[id] = l
			soonest = min(soonest, l.till)
		}
	}
	r.sweepAt = max(soonest, now+pause)
}

// acquire gives the bucket after a message and the answer to it. A stale message
// leaves the bucket as it is.
func (r *reference) acquire(m message, now int64) (*reference, answer) {
	ttl := min(m.ttl.Microseconds(), longest)
	n := r.from(m.limit, now, ttl)
	var lump, former int64
	if l, recorded := n.leases[m.id]; recorded {
		if l.seq >= m.seq {
			a := n.level(now)
			a.status, a.applies = stale, limit{}
			return r, a
		}
		delete(n.leases, m.id)
		if l.till > now {
			lump, former = l.lump, min(l.till, now+l.length)
		}
		n.add(-max(0, m.kept+m.returned+m.spent-l.lump))
		if whole := floor(n.tokens); whole < -n.limit.burst {
			n.add(-n.limit.burst - whole)
		}
	}
	kept := min(m.kept, lump, max(0, n.limit.burst-n.out()))
	room := rat(n.limit.burst - n.out() - kept)
	with := new(big.Rat).Add(n.tokens, rat(min(m.returned, lump-kept)))
	if with.Cmp(room) > 0 {
		with = room
	}
	if with.Cmp(n.tokens) > 0 {
		n.tokens = with
	}
	n.sweep(m.id, now)
	saving := n.saves > now

	granted, refused, blocked := []int64{}, false, false
	spare := n.limit.burst / unit * m.reserve / 1000 * unit
	hold, booked := int64(0), false
	for _, need := range m.needs {
		can, most := int64(0), floor(n.tokens)
		if need.low {
			most -= spare
		}
		book := need.book && !need.hold
		if book {
			most += n.limit.burst
		}
		if !blocked && most > 0 {
			can = min(need.count, most/(need.n*unit))
		}
		if book && need.n*unit > n.limit.burst-n.out()-kept-hold {
			can = 0
			if need.count > 0 {
				n.saves = max(n.saves, now+ttl)
				saving = n.saves > now
			}
		}
		n.add(-can * need.n * unit)
		booked = booked || book && can > 0
		if need.hold {
			hold += can * need.n * unit
		}
		if need.low || book {
			granted = append(granted, can)
			continue
		}
		refused = refused || can < need.count
		if can < need.count && need.queue {
			blocked = true
			if need.n > 1 {
				if floor(n.tokens) >= 0 {
					n.saves = 0
				}
				n.saves = max(n.saves, now+ttl)
			}
		}
		granted = append(granted, can)
	}
	if booked && floor(n.tokens) < 0 {
		n.saves = max(n.saves, now+n.paid())
		saving = true
	}
	// A lump when there is plenty, or when nobody else has a demand.
	kept += hold
	if whole := floor(n.tokens) - spare; whole > 0 && !saving && !refused && (whole >= 2*m.want || n.demand() == 0) {
		if g := min(m.want, whole/2) / unit * unit; g > 0 && g >= m.least {
			n.add(-g)
			kept += g
		}
	}
	if kept > 0 {
		till := max(now+ttl, former)
		if saving && hold == 0 {
			till = former
		}
		ttl = min(ttl, till-now)
		n.leases[m.id] = held{seq: m.seq, lump: kept, till: till, length: till - now, demand: m.demand}
		n.lastEnd = max(n.lastEnd, till)
		if n.sweepAt == 0 || n.sweepAt > till {
			n.sweepAt = till
		}
	} else {
		ttl = 0
	}
	n.tidy(now)
	a := n.level(now)
	a.seq, a.lump, a.ttl, a.granted = m.seq, kept, ttl, granted
	return n, a
}

func (r *reference) reset(l limit, now int64) (*reference, answer) {
	n := r.from(l, now, 0)
	n.tokens = rat(max(0, n.limit.burst-n.out()))
	n.tidy(now)
	return n, n.level(now)
}

func (r *reference) peek(l limit, now int64) answer { return r.from(l, now, 0).level(now) }

func (r *reference) level(now int64) answer {
	a := answer{tokens: floor(r.tokens), out: r.out(), lastEnd: max(0, r.lastEnd-now), demand: r.demand()}
	if r.limit != r.asked {
		a.status, a.applies = other, r.limit
	}
	return a
}

// full reports whether forgetting the bucket at that time gives nothing away.
func (r *reference) full(now int64) bool {
	n := r.from(r.limit, now, 0)
	return len(n.leases) == 0 && n.tokens.Cmp(rat(r.limit.burst)) == 0
}

// same compares whole answers.
func same(a, b answer) bool {
	return a.status == b.status && a.applies == b.applies && a.tokens == b.tokens && a.out == b.out && a.lastEnd == b.lastEnd && a.rates == b.rates && a.demand == b.demand &&
		a.seq == b.seq && a.lump == b.lump && a.rate == b.rate && a.burst == b.burst && a.ttl == b.ttl &&
		slices.Equal(a.granted, b.granted)
}
