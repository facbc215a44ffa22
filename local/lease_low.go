package local

// Reserve says how many tokens of the lease are kept for important requests.
func (l *Lease) Reserve(n int64) { l.spare.Store(n) }

// Spare is how many are. It may be called by anybody.
func (l *Lease) Spare() int64 { return l.spare.Load() }

// TakeLow is [Lease.Take] for a request that leaves the spare tokens alone.
func (l *Lease) TakeLow(now, n int64) (left int64, low, ok bool) {
	if n < 1 || now >= l.gate.Load() {
		return 0, false, false
	}
	left, ok = l.spendAbove(n, l.spare.Load())
	return left, ok && left < l.low.Load(), ok
}

// TakeLateAbove is [Lease.TakeLate] that leaves at least so many tokens.
func (l *Lease) TakeLateAbove(now, n, least int64) bool {
	if least == 0 {
		return l.TakeLate(now, n)
	}
	if n < 1 || now >= l.end {
		return false
	}
	l.earn(now)
	_, ok := l.spendAbove(n, least)
	if ok && !l.paused {
		l.level -= n
	}
	return ok
}

// spendAbove is spend if at least so many tokens are left. It stands apart so that
// the hot path has no second amount to look at.
func (l *Lease) spendAbove(n, least int64) (left int64, ok bool) {
	for {
		b := l.balance.Load()
		if b < n || b-n < least {
			return b, false
		}
		if n > 1 {
			l.extra.Add(n - 1)
		}
		if l.balance.CompareAndSwap(b, b-n) {
			return b - n, true
		}
		if n > 1 {
			l.extra.Add(1 - n)
		}
	}
}
