package local_test

import (
	"testing"

	"github.com/resilient-go/limiter/local"
)

// claimable is a lease of ten tokens until the instant 1000.
func claimable() *local.Lease {
	l := &local.Lease{}
	l.Grant(0, 10, 1000, 1000, 0)
	return l
}

func TestClaimsAreKeptUntilTheyAreDecided(t *testing.T) {
	l := claimable()
	l.TakeLate(1, 3)
	epoch := l.Claim(3)
	if kept, spent, _ := l.Report(2); kept != 10 || spent != 0 {
		t.Errorf("with a claim of three, %d are kept and %d spent; want all ten", kept, spent)
	}
	l.Grant(10, 10, 1000, 1000, 0)
	if l.Balance(3) != 7 || l.Rights(3) != 10 {
		t.Errorf("balance %d, rights %d; want 7 and 10", l.Balance(3), l.Rights(3))
	}
	l.Commit(3, 4, epoch)
	if kept, spent, _ := l.Report(5); kept != 7 || spent != 3 {
		t.Errorf("after that %d are kept and %d spent, want 7 and 3", kept, spent)
	}
	l.Grant(7, 7, 1000, 1000, 0)
	l.TakeLate(6, 2)
	epoch = l.Claim(2)
	if !l.Release(2, 7, epoch) || l.Balance(7) != 7 {
		t.Errorf("a balance of %d after the claim was released, want 7", l.Balance(7))
	}
}

// What the root may not know of any more is not put back.
func TestClaimsEndWithTheLease(t *testing.T) {
	for what, end := range map[string]func(l *local.Lease) (now int64){
		"it was removed":                func(l *local.Lease) int64 { l.Remove(2); return 3 },
		"it has ended":                  func(*local.Lease) int64 { return 1000 },
		"it has ended and was reported": func(l *local.Lease) int64 { l.Report(1000); return 1001 },
		"the root knows of less": func(l *local.Lease) int64 {
			l.Report(2)
			l.Grant(10, 8, 1000, 1000, 0)
			return 3
		},
		"it was removed and there is another": func(l *local.Lease) int64 {
			l.Remove(2)
			l.Grant(0, 10, 1000, 1000, 0)
			return 3
		},
	} {
		l := claimable()
		l.TakeLate(1, 3)
		epoch := l.Claim(3)
		now := end(l)
		before := l.Balance(now)
		if l.Release(3, now, epoch) || l.Balance(now) != before {
			t.Errorf("%s: the claim came back, %d to %d", what, before, l.Balance(now))
		}
		l.Commit(3, now, epoch)
		if l.Calls() != 1 {
			t.Errorf("%s: %d calls, want 1", what, l.Calls())
		}
	}
}

// A lease with a rate earns nothing in the room of a claim, so that with what comes
// back it holds no more than its burst.
func TestNothingIsEarnedInTheRoomOfAClaim(t *testing.T) {
	const second = 1_000_000_000
	l := &local.Lease{}
	l.Grant(0, 5, 100*second, 100*second, 0)
	l.Metered(local.Unit, 5*local.Unit, 0, 0) // one per second, up to five
	l.TakeLate(0, 4)
	epoch := l.Claim(3) // of the four one is spent
	if l.Meter(1, 20*second); l.Balance(20*second) != 2 {
		t.Errorf("a balance of %d, want 2: the room of what was spent", l.Balance(20*second))
	}
	if !l.Release(3, 20*second, epoch) || l.Balance(20*second) != 5 {
		t.Errorf("a balance of %d with what came back, want 5", l.Balance(20*second))
	}
	l.TakeLate(20*second, 3)
	epoch = l.Claim(3)
	l.Commit(3, 30*second, epoch)
	if l.Meter(1, 32*second); l.Balance(32*second) != 4 {
		t.Errorf("a balance of %d, want 4: earned since the claim was spent", l.Balance(32*second))
	}
}
