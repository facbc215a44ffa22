package local

// A claim is tokens that were taken for something that may not come about. Until
// it is decided they are neither held nor spent: the root is told that they are
// kept, so that they can be put back at any time. A claim ends with the lease, or
// when the root knows of less than was kept.

// Claim makes a claim of what TakeLate has just taken at now, and returns its epoch.
func (l *Lease) Claim(n int64) (epoch uint64) {
	l.claimed.Add(n)
	if !l.paused {
		l.level += n // they keep their room: nothing is earned in it
	}
	return l.epoch
}

// Epoch is that of a claim made now.
func (l *Lease) Epoch() uint64 { return l.epoch }

// Commit ends a claim: its tokens are spent.
func (l *Lease) Commit(n, now int64, epoch uint64) {
	if epoch != l.epoch {
		return // they count as spent already
	}
	l.earn(now)
	l.claimed.Add(-n)
	if !l.paused {
		l.level -= n
	}
}

// Release ends a claim: its tokens are held again, if the lease still lives. It
// reports whether they are. Nothing is minted: the root has counted them as out.
func (l *Lease) Release(n, now int64, epoch uint64) bool {
	if epoch != l.epoch || now >= l.end {
		return false
	}
	l.extra.Add(-n) // the call that took them still counts as one
	l.claimed.Add(-n)
	l.balance.Add(n)
	return true
}

// void ends all claims: their tokens count as spent.
func (l *Lease) void() {
	l.epoch++
	l.claimed.Store(0)
}
