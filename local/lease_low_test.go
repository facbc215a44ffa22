package local_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/resilient-go/limiter/local"
)

func TestTakeLowLeavesTheSpareTokens(t *testing.T) {
	var l local.Lease
	l.Grant(0, 10, 100, 200, 3)
	l.Reserve(4)
	type outcome struct {
		left    int64
		low, ok bool
	}
	take := func(now, n int64) outcome {
		left, low, ok := l.TakeLow(now, n)
		return outcome{left, low, ok}
	}
	for _, c := range []struct {
		now, n int64
		want   outcome
	}{
		{0, 7, outcome{left: 10}},
		{0, 0, outcome{}},
		{0, -1, outcome{}},
		{0, 5, outcome{left: 5, ok: true}},
		{0, 2, outcome{left: 5}},
		{100, 1, outcome{}},
		{99, 1, outcome{left: 4, ok: true}},
		{99, 1, outcome{left: 4}},
	} {
		if got := take(c.now, c.n); got != c.want {
			t.Errorf("TakeLow(%d, %d) = %+v, want %+v", c.now, c.n, got, c.want)
		}
	}
	for _, c := range []struct {
		now, n, least int64
		want          bool
	}{{100, 1, 4, false}, {100, 0, 0, false}, {200, 1, 1, false}, {199, 2, 2, true}, {199, 2, 1, false}, {199, 1, 0, true}, {199, 1, 1, false}} {
		if got := l.TakeLateAbove(c.now, c.n, c.least); got != c.want {
			t.Errorf("TakeLateAbove(%d, %d, %d) = %v", c.now, c.n, c.least, got)
		}
	}
	if _, spent, _ := l.Report(150); spent != 9 {
		t.Errorf("%d spent, want 9", spent)
	}
	if l.Calls() != 4 || l.Balance(150) != 1 {
		t.Errorf("%d calls and a balance of %d, want 4 and 1", l.Calls(), l.Balance(150))
	}
}

// Many at once: those of low priority never take what is spare, and no token twice.
func TestTakeLowUnderManyTakers(t *testing.T) {
	var l local.Lease
	const tokens, spare = 100_000, 20_000
	l.Grant(0, tokens, 100, 200, 0)
	l.Reserve(spare)
	var all sync.WaitGroup
	var taken atomic.Int64
	for i := range 8 {
		all.Go(func() {
			for {
				left, _, ok := l.TakeLow(0, int64(1+i%3))
				if !ok {
					return
				}
				if left < spare {
					t.Errorf("%d left", left)
					return
				}
				taken.Add(int64(1 + i%3))
			}
		})
	}
	all.Wait()
	if n := taken.Load(); n != tokens-spare || l.Balance(0) != spare {
		t.Errorf("%d taken and %d left, want %d and %d", n, l.Balance(0), tokens-spare, spare)
	}
}
