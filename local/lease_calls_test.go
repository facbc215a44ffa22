package local_test

import (
	"reflect"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/resilient-go/limiter/local"
)

func TestLeaseCountsItsCalls(t *testing.T) {
	l := granted(20)
	want := func(step string, calls int64) {
		t.Helper()
		if got := l.Calls(); got != calls {
			t.Fatalf("%s: %d calls, want %d", step, got, calls)
		}
	}
	want("before any", 0)
	l.Take(0, 1)
	l.Take(0, 1)
	want("two for one token", 2)
	l.Take(0, 5)
	want("one for five", 3)
	l.Take(0, 14)     // 13 are left
	l.Take(0, 0)      // no number
	l.Take(50, 1)     // too late
	l.TakeLate(0, 14) // neither
	want("none that is refused", 3)
	l.TakeLate(60, 2)
	want("the holder's as well", 4)
	kept, _, _ := l.Report(1)
	want("told to the root", 4)
	l.Take(1, 3)
	l.Grant(kept, 4, 50, 90, 3) // of 11 kept; 8 would be there
	want("cut by the root", 5)
	l.Take(1, 1)
	l.Metered(1000*micro, 100*micro, 1, 1)
	l.TakeLate(80, 1)
	want("of a lease with a rate", 6)
	l.Remove(80)
	want("removed", 6)
	l.Grant(0, 3, 150, 190, 0)
	l.Take(100, 3)
	want("granted again", 7)
	l.Report(200)
	want("ended", 7)
}

// Calls never goes back and never runs ahead, while requests of all sizes succeed
// and fail; afterwards it is exact.
func TestLeaseCountsItsCallsUnderManyGoroutines(t *testing.T) {
	var (
		l      local.Lease
		served atomic.Int64
		over   atomic.Bool
		group  sync.WaitGroup
	)
	const callers = 6
	for size := range int64(callers) {
		group.Go(func() {
			for !over.Load() {
				if _, _, ok := l.Take(0, 1+100*size); ok {
					served.Add(1)
				}
			}
		})
	}
	last := int64(0)
	for rounds := 0; rounds < many(300_000, 20_000_000) || served.Load() < 1000; rounds++ {
		if rounds%32 == 0 {
			kept, _, _ := l.Report(0)
			l.Grant(kept, 1700, 1, 2, 0)
		}
		calls := l.Calls()
		if calls < last {
			t.Errorf("%d calls, and then %d", last, calls)
			break
		}
		if most := served.Load() + callers; calls > most { // each may have one that it has not counted yet
			t.Errorf("%d calls, of %d at most", calls, most)
			break
		}
		last = calls
	}
	over.Store(true)
	group.Wait()
	if got, want := l.Calls(), served.Load(); got != want {
		t.Errorf("%d calls, want %d", got, want)
	}
	remove(&l, 0)
	if got, want := l.Calls(), served.Load(); got != want {
		t.Errorf("removed: %d calls, want %d", got, want)
	}
}

// What every Take reads must not share a cache line with what every Take writes:
// each would take it away from the others.
func TestLeaseKeepsWhatMovesApart(t *testing.T) {
	const line = 64
	at := func(name string) (begin, end uintptr) {
		f, ok := reflect.TypeFor[local.Lease]().FieldByName(name)
		if !ok {
			t.Fatalf("there is no field %s", name)
		}
		return f.Offset, f.Offset + f.Type.Size()
	}
	writes, _ := at("balance")
	for _, name := range []string{"gate", "low", "metered"} {
		if _, end := at(name); end > writes || writes-end < line-8 {
			t.Errorf("%s ends at %d, the balance begins at %d: they may share a line", name, end, writes)
		}
	}
}
