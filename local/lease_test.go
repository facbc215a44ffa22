package local_test

import (
	"testing"

	"github.com/resilient-go/limiter/local"
)

// granted is a lease of tokens from the instant 0 on, that anybody may take
// from before 50 and that ends at 90. Fewer than 3 tokens ask for a renewal.
func granted(tokens int64) *local.Lease {
	l := new(local.Lease)
	kept, _, _ := l.Report(0)
	l.Grant(kept, tokens, 50, 90, 3)
	return l
}

// remove is Remove of a lease without a rate, which holds whole tokens only.
func remove(l *local.Lease, now int64) (held, spent, lost int64) {
	held, part, spent, lost := l.Remove(now)
	if part != 0 {
		panic("a part of a token is held")
	}
	return held, spent, lost
}

func TestLeaseTakeSpendsWhatIsThere(t *testing.T) {
	l := granted(10)
	for _, c := range []struct {
		n, left int64
		low, ok bool
	}{
		{4, 6, false, true},
		{7, 6, false, false},
		{0, 0, false, false},
		{-3, 0, false, false},
		{3, 3, false, true},
		{1, 2, true, true},
		{3, 2, false, false},
		{2, 0, true, true},
		{1, 0, false, false},
	} {
		if left, low, ok := l.Take(0, c.n); left != c.left || low != c.low || ok != c.ok {
			t.Fatalf("Take(%d) = %d, %v, %v; want %d, %v, %v", c.n, left, low, ok, c.left, c.low, c.ok)
		}
	}
}

func TestLeaseTakeLateSpendsWhatIsThere(t *testing.T) {
	l := granted(5)
	for _, c := range []struct {
		n  int64
		ok bool
	}{{6, false}, {0, false}, {-3, false}, {4, true}, {2, false}, {1, true}, {1, false}} {
		if got := l.TakeLate(0, c.n); got != c.ok {
			t.Fatalf("TakeLate(%d) = %v, want %v", c.n, got, c.ok)
		}
	}
}

func TestLeaseIsOpenThenForTheHolderThenOver(t *testing.T) {
	for _, c := range []struct {
		now              int64
		open, late, held bool
	}{
		{0, true, true, true},
		{49, true, true, true},
		{50, false, true, true},
		{89, false, true, true},
		{90, false, false, false},
		{91, false, false, false},
	} {
		if _, _, ok := granted(5).Take(c.now, 1); ok != c.open {
			t.Errorf("Take at %d = %v, want %v", c.now, ok, c.open)
		}
		if ok := granted(5).TakeLate(c.now, 1); ok != c.late {
			t.Errorf("TakeLate at %d = %v, want %v", c.now, ok, c.late)
		}
		if got := granted(5).Balance(c.now) == 5; got != c.held {
			t.Errorf("at %d the balance is held: %v, want %v", c.now, got, c.held)
		}
	}
}

func TestZeroLeaseIsEmpty(t *testing.T) {
	var l local.Lease
	for _, now := range []int64{-1, 0, 1, 1 << 62} {
		if _, _, ok := l.Take(now, 1); ok || l.TakeLate(now, 1) || l.Balance(now) != 0 || !l.Idle() || l.Due(now) {
			t.Errorf("at %d an empty lease gives something or wants a renewal", now)
		}
		if kept, spent, lost := l.Report(now); kept != 0 || spent != 0 || lost != 0 {
			t.Errorf("at %d an empty lease reports %d, %d, %d", now, kept, spent, lost)
		}
		if held, spent, lost := remove(&l, now); held != 0 || spent != 0 || lost != 0 {
			t.Errorf("at %d an empty lease holds %d, %d, %d", now, held, spent, lost)
		}
	}
}

func TestShutLeasePassesOnlyItsHolder(t *testing.T) {
	l := granted(5)
	l.Shut(true)
	if _, _, ok := l.Take(0, 1); ok {
		t.Error("somebody passed a shut gate")
	}
	if !l.TakeLate(0, 1) {
		t.Error("the holder did not pass")
	}
	kept, _, _ := l.Report(1)
	l.Grant(kept, 20, 60, 100, 3)
	if _, _, ok := l.Take(1, 1); ok {
		t.Error("a grant opened a shut gate")
	}
	l.Shut(false)
	if left, _, ok := l.Take(59, 1); !ok || left != 19 {
		t.Errorf("Take at 59 left %d, passed: %v; want 19, true", left, ok)
	}
	if _, _, ok := l.Take(60, 1); ok {
		t.Error("the gate that was opened again does not heed the last grant")
	}
	remove(l, 60)
	l.Shut(true)
	l.Shut(false)
	if _, _, ok := l.Take(0, 1); ok {
		t.Error("an empty lease was opened")
	}
}

func TestLeaseReportsWhatIsKeptSpentAndLost(t *testing.T) {
	l := granted(10)
	report := func(now, kept, spent, lost int64) {
		t.Helper()
		if k, s, o := l.Report(now); k != kept || s != spent || o != lost {
			t.Fatalf("Report(%d) = kept %d, spent %d, lost %d; want %d, %d, %d", now, k, s, o, kept, spent, lost)
		}
	}
	report(0, 10, 0, 0)
	l.Take(1, 3)
	report(2, 7, 3, 0)
	l.TakeLate(3, 2) // while the answer is on its way
	l.Grant(7, 20, 80, 150, 3)
	if got := l.Balance(3); got != 18 {
		t.Fatalf("20 granted, 2 spent meanwhile: the balance is %d, want 18", got)
	}
	report(4, 18, 2, 0)
	l.Take(5, 4)
	report(150, 0, 4, 14)
	report(151, 0, 0, 0)
}

func TestLeaseThatTheRootCutShort(t *testing.T) {
	l := granted(10)
	l.Report(0)
	l.Take(1, 4)
	l.Grant(10, 7, 50, 90, 3)
	if got := l.Balance(1); got != 3 {
		t.Fatalf("10 cut to 7, 4 spent meanwhile: the balance is %d, want 3", got)
	}
	l.Report(1)
	l.Take(2, 2)
	l.Grant(3, 0, 50, 90, 3)
	if got := l.Balance(2); got != 0 {
		t.Fatalf("3 cut to 0, 2 spent meanwhile: the balance is %d, want 0", got)
	}
	if _, spent, lost := l.Report(3); spent != 2 || lost != 0 {
		t.Errorf("then %d were reported as spent and %d as lost, want 2 and 0", spent, lost)
	}
}

func TestLeaseRemove(t *testing.T) {
	l := granted(10)
	l.Take(1, 3)
	if held, spent, lost := remove(l, 89); held != 7 || spent != 3 || lost != 0 {
		t.Errorf("Remove before the end = %d, %d, %d; want 7, 3, 0", held, spent, lost)
	}
	if _, _, ok := l.Take(1, 1); ok || l.TakeLate(1, 1) || !l.Idle() || l.Due(1) {
		t.Error("something is left of a lease that was removed")
	}
	l = granted(10)
	l.Take(1, 3)
	if held, spent, lost := remove(l, 90); held != 0 || spent != 3 || lost != 7 {
		t.Errorf("Remove at the end = %d, %d, %d; want 0, 3, 7", held, spent, lost)
	}
}

func TestLeaseIsDueWhenLittleTokensOrTimeIsLeft(t *testing.T) {
	l := granted(4)
	due := func(step string, now int64, want bool) {
		t.Helper()
		if got := l.Due(now); got != want {
			t.Fatalf("%s: due is %v, want %v", step, got, want)
		}
	}
	due("just granted", 0, false)
	due("time is over for others", 50, true)
	l.Take(0, 1)
	due("as much as low", 0, false)
	l.Take(0, 1)
	due("less than low", 0, true)
	l.Quiet()
	due("asked for", 0, false)
	if _, low, ok := l.Take(0, 1); low || !ok {
		t.Error("a quiet lease asks for a renewal")
	}
	l.Grant(2, 5, 50, 90, 5)
	due("granted again", 0, true)
}

func TestLeaseTakeAllocatesNothing(t *testing.T) {
	l := granted(1 << 40)
	allocs := testing.AllocsPerRun(1000, func() {
		if _, _, ok := l.Take(1, 1); !ok {
			t.Fatal("refused")
		}
	})
	if allocs != 0 {
		t.Errorf("Take allocates %v times", allocs)
	}
}
