package local

import "sync/atomic"

// A Lease is a number of permits that were paid for at the root and may be
// spent here until they end.
//
// [Lease.Take] may be called by anybody at any time; it takes no lock. All
// other methods belong to the holder of the key's lock. The zero Lease is
// empty.
type Lease struct {
	balance atomic.Int64 // tokens; never negative
	gate    atomic.Int64 // Take passes before this instant; 0 while it is shut
	low     atomic.Int64 // a balance below asks for a renewal

	opens int64 // what gate is while it is not shut
	end   int64 // nothing is spent from this instant on
	told  int64 // the balance as last accounted for to the root
	shut  bool  // somebody waits: only TakeLate passes
}

// Take spends n tokens if the gate is open at now and the balance suffices. It
// returns what is left, and whether that is so little that a renewal is due.
func (l *Lease) Take(now, n int64) (left int64, low, ok bool) {
	if now >= l.gate.Load() {
		return 0, false, false
	}
	for {
		b := l.balance.Load()
		if b < n {
			return b, false, false
		}
		if l.balance.CompareAndSwap(b, b-n) {
			return b - n, b-n < l.low.Load(), true
		}
	}
}

// TakeLate is Take for the holder of the lock: it passes until the very end,
// also while the gate is shut for others.
func (l *Lease) TakeLate(now, n int64) bool {
	if now >= l.end {
		return false
	}
	for {
		b := l.balance.Load()
		if b < n {
			return false
		}
		if l.balance.CompareAndSwap(b, b-n) {
			return true
		}
	}
}

// Balance is how many tokens are held at now.
func (l *Lease) Balance(now int64) int64 {
	if now >= l.end {
		return 0
	}
	return l.balance.Load()
}

// Report says what the next message to the root states: what is kept, and what
// was spent since the last one. Tokens of an ended lease are not kept; they are
// returned as lost.
func (l *Lease) Report(now int64) (kept, spent, lost int64) {
	if now >= l.end {
		lost = l.balance.Swap(0)
		spent = l.told - lost
		l.told = 0
		return 0, spent, lost
	}
	kept = l.balance.Load()
	spent = l.told - kept
	l.told = kept
	return kept, spent, 0
}

// Grant applies the root's answer to a report that stated kept tokens: the
// lease is now of total tokens, less what was spent since, and ends at end.
// Until opens anybody may take from it.
func (l *Lease) Grant(kept, total, opens, end, low int64) {
	l.end, l.opens = end, opens
	l.low.Store(low)
	for {
		b := l.balance.Load()
		next := max(0, b+total-kept)
		if l.balance.CompareAndSwap(b, next) {
			l.told += next - b
			break
		}
	}
	if !l.shut {
		l.gate.Store(l.opens)
	}
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

// Quiet stops Take from asking for a renewal until the next Grant.
func (l *Lease) Quiet() { l.low.Store(0) }

// Idle reports whether nothing is held. It may be called by anybody.
func (l *Lease) Idle() bool { return l.balance.Load() == 0 }

// Remove empties the lease and shuts it. It returns what was held, which is no
// longer spendable here and may be returned to the root, and what was spent
// since the last report. Tokens of an ended lease are returned as lost.
func (l *Lease) Remove(now int64) (held, spent, lost int64) {
	l.gate.Store(0)
	b := l.balance.Swap(0)
	spent = l.told - b
	if now >= l.end {
		b, lost = 0, b
	}
	l.told, l.end, l.opens = 0, 0, 0
	return b, spent, lost
}
