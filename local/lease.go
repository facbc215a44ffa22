package local

import "sync/atomic"

// A Lease is a number of permits that were paid for at the root and may be
// spent here until they end. It may come with a rate, a part of the root's, at
// which it earns more of them up to a burst.
//
// [Lease.Take] may be called by anybody at any time; it takes no lock. All
// other methods belong to the holder of the key's lock. The zero Lease is
// empty.
type Lease struct {
	// What every Take reads and only the holder writes is apart from what every
	// Take writes: a cache line that stays with all cores, and one that moves.
	gate    atomic.Int64 // Take passes before this instant; 0 while it is shut
	low     atomic.Int64 // a balance below asks for a renewal
	metered atomic.Bool  // there is a rate

	shut   bool  // somebody waits: only TakeLate passes
	paused bool  // a message is under way: nothing is earned
	opens  int64 // what gate is while it is not shut
	end    int64 // nothing is spent from this instant on
	told   int64 // the balance as last accounted for to the root
	gone   int64 // spent until then, since the beginning
	calls  int64 // as last told by Calls
	rate   int64 // micro-tokens per second; 0: a lump only

	epoch  uint64 // of claims; a new one ends those of the old one
	burst  int64  // micro-tokens; at this balance and above nothing is earned
	part   int64  // micro-tokens earned towards the next whole token
	since  int64  // what was earned before this instant is in the balance,
	rest   uint64 // but for this many 10^-9 micro-tokens
	level  int64  // the balance of that instant; what Take spent later may be of now
	earned int64  // whole tokens since Earned was asked

	balance atomic.Int64 // tokens; never negative
	extra   atomic.Int64 // tokens spent beyond the first of each call
	spare   atomic.Int64 // tokens that TakeLow leaves alone; only the holder writes it
	claimed atomic.Int64 // tokens, see Claim; only the holder writes it
}

// Take spends n ≥ 1 tokens if the gate is open at now and the balance suffices.
// It returns what is left, and whether that is so little that a renewal is due.
// For n = 1 it costs one atomic write.
func (l *Lease) Take(now, n int64) (left int64, low, ok bool) {
	if n < 1 || now >= l.gate.Load() {
		return 0, false, false
	}
	left, ok = l.spend(n)
	return left, ok && left < l.low.Load(), ok
}

// spend takes n tokens off the balance, or none and tells what it is. Nobody
// ever sees it negative, so that a large request that must fail does not make a
// small one fail.
func (l *Lease) spend(n int64) (left int64, ok bool) {
	for {
		b := l.balance.Load()
		if b < n {
			return b, false
		}
		if n > 1 {
			l.extra.Add(n - 1) // first: Calls counts too few rather than too many
		}
		if l.balance.CompareAndSwap(b, b-n) {
			return b - n, true
		}
		if n > 1 {
			l.extra.Add(1 - n)
		}
	}
}

// TakeLate is Take for the holder of the lock: it passes until the very end,
// also while the gate is shut for others.
func (l *Lease) TakeLate(now, n int64) bool {
	if n < 1 || now >= l.end {
		return false
	}
	l.earn(now)
	_, ok := l.spend(n)
	if ok && !l.paused {
		l.level -= n // at an instant that is known
	}
	return ok
}

// Calls is how many calls of Take and TakeLate have spent tokens since the
// beginning. It never goes back, and once no Take is under way it is exact.
func (l *Lease) Calls() int64 {
	spent := l.gone + l.told - l.balance.Load()
	l.calls = max(l.calls, spent-l.extra.Load())
	return l.calls
}

// Balance is how many tokens are held at now.
func (l *Lease) Balance(now int64) int64 {
	if now >= l.end {
		return 0
	}
	return l.balance.Load()
}

// Held is what is held at now and worth giving back, in micro-tokens, as far as it
// has been counted.
func (l *Lease) Held(now int64) int64 {
	if l.Rights(now) == 0 {
		return 0
	}
	return l.balance.Load()*Unit + l.part
}

// End is the instant from which on nothing is spent.
func (l *Lease) End() int64 { return l.end }

// Rights is the most that may be held at one time from now on: the balance, or
// what it can grow to by a rate.
func (l *Lease) Rights(now int64) int64 {
	held := l.Balance(now)
	if now < l.end {
		held += l.claimed.Load()
	}
	if l.rate > 0 && now < l.end {
		held = max(held, (l.burst+Unit-1)/Unit)
	}
	return held
}

// Report says what the next message to the root states: what is kept, and what
// was spent since the last one. Part tells what is kept besides. Until the root
// answers nothing is earned, since it may give the rate to somebody else. Tokens of an ended lease are not kept; they are
// returned as lost.
func (l *Lease) Report(now int64) (kept, spent, lost int64) {
	if now >= l.end {
		lost = l.balance.Swap(0)
		spent = l.account(lost, 0)
		l.unmeter()
		l.void()
		return 0, spent, lost
	}
	l.earn(now)
	if l.paused {
		l.rate = 0 // the root may have set any rate with the answer that is lost
	}
	l.paused = true
	kept = l.balance.Load() + l.claimed.Load()
	return kept, l.account(kept, kept), 0
}

// account settles what was spent until the balance was b; from then on it counts
// from told.
func (l *Lease) account(b, told int64) (spent int64) {
	spent = l.told - b
	l.gone += spent
	l.told = told
	return spent
}

// Grant applies the root's answer to a report that stated kept tokens: the
// lease is now of total tokens, less what was spent since, and ends at end.
// Until opens anybody may take from it. It returns how many tokens are gone
// because the root does not know of them.
func (l *Lease) Grant(kept, total, opens, end, low int64) (lost int64) {
	l.end, l.opens = end, opens
	l.low.Store(low)
	for {
		b := l.balance.Load()
		next := max(0, b+total-kept)
		if total < kept {
			l.part = 0
			l.void() // the root may not know of them
		}
		if l.balance.CompareAndSwap(b, next) {
			l.told += next - b
			l.level = total
			lost = max(0, b-next)
			break
		}
	}
	if !l.shut {
		l.gate.Store(l.opens)
	}
	return lost
}

// Shut closes the gate for those without the lock, or opens it again.
func (l *Lease) Shut(shut bool) {
	l.shut = shut
	if shut {
		l.gate.Store(0)
	} else {
		l.gate.Store(l.opens)
	}
}

// Due reports whether the lease should be renewed: little is left, or half of
// its time is over.
func (l *Lease) Due(now int64) bool {
	return l.end > 0 && (l.balance.Load() < l.low.Load() || now >= l.opens)
}

// Opens is the instant from which the lease is due for renewal, whatever is left.
func (l *Lease) Opens() int64 { return l.opens }

// Hurry makes the lease due: the next one who asks has it renewed.
func (l *Lease) Hurry() {
	l.opens = 0
	l.gate.Store(0)
}

// Quiet stops Take from asking for a renewal until the next Grant.
func (l *Lease) Quiet() { l.low.Store(0) }

// Idle reports whether nothing is held. It may be called by anybody.
func (l *Lease) Idle() bool {
	return l.balance.Load() == 0 && !l.metered.Load() && l.claimed.Load() == 0
}

// Rated reports whether the lease has a rate. It may be called by anybody.
func (l *Lease) Rated() bool { return l.metered.Load() }

// Ended reports whether nothing of the lease can be spent any more.
func (l *Lease) Ended(now int64) bool { return now >= l.end }

// Remove empties the lease and shuts it. It returns what was held, and which
// part of a token besides, in micro-tokens: it is no longer spendable here and
// may be returned to the root. And it tells what was spent since the last report.
// Tokens of an ended lease are returned as lost.
func (l *Lease) Remove(now int64) (held, part, spent, lost int64) {
	l.earn(now)
	l.gate.Store(0)
	b := l.balance.Swap(0)
	spent = l.account(b, 0)
	l.void()
	part = l.part
	if now >= l.end {
		b, part, lost = 0, 0, b
	}
	l.end, l.opens = 0, 0
	l.unmeter()
	return b, part, spent, lost
}
