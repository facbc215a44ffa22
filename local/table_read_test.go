package local_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/resilient-go/limiter/local"
)

// Whoever is there all the time is found by each Get, while the table grows
// around it and others come and go.
func TestTableGetFindsResidentsWhileOthersComeAndGo(t *testing.T) {
	const residents, limit = 40, 1000
	for range many(6, 300) {
		table := local.NewTable[*thing](limit)
		var kept [residents]*thing
		for i := range kept {
			kept[i] = stayer(table, fmt.Sprint("resident ", i))
		}
		var (
			readers, writers sync.WaitGroup
			over             atomic.Bool
		)
		for range 2 {
			readers.Go(func() {
				for !over.Load() {
					for i, want := range kept {
						if got, ok := table.Get(fmt.Sprint("resident ", i)); !ok || got != want {
							t.Errorf("resident %d is not found", i)
							return
						}
					}
				}
			})
		}
		for g := range 2 {
			writers.Go(func() {
				for i := range limit {
					add(table, fmt.Sprint(g, " ", i))
				}
			})
		}
		writers.Wait()
		over.Store(true)
		readers.Wait()
		if table.Evicted() == 0 {
			t.Fatal("the table was never full")
		}
	}
}

// undecided is an entry that takes its time to say whether it stays.
type undecided struct {
	stays   bool
	asked   chan struct{} // closed when it is asked
	answer  chan struct{} // closed to have it answer
	decided atomic.Bool
}

func (e *undecided) Retire() bool {
	if e.asked != nil && !e.decided.Load() {
		close(e.asked)
		<-e.answer
		e.decided.Store(true)
	}
	return !e.stays
}

// While an entry is asked to retire, nobody is given it: a Get waits for what it
// says, and others do not.
func TestTableGetWaitsForAnEntryThatIsAskedToGo(t *testing.T) {
	for _, stays := range []bool{true, false} {
		table := local.NewTable[*undecided](2)
		old := &undecided{stays: stays, asked: make(chan struct{}), answer: make(chan struct{})}
		table.GetOrAdd("old", func() *undecided { return old })
		other, _ := table.GetOrAdd("other", func() *undecided { return &undecided{} })

		var group sync.WaitGroup
		group.Go(func() { table.GetOrAdd("newcomer", func() *undecided { return &undecided{} }) })
		<-old.asked
		if e, ok := table.Get("other"); !ok || e != other {
			t.Error("somebody else is not found meanwhile")
		}
		if _, ok := table.Get("nobody"); ok {
			t.Error("nobody is found meanwhile")
		}
		var begun atomic.Bool
		group.Go(func() {
			begun.Store(true)
			e, ok := table.Get("old")
			if !old.decided.Load() {
				t.Error("it was given to somebody while it was being asked")
			}
			if ok != stays || ok && e != old {
				t.Errorf("it stays: %v; found: %v", stays, ok)
			}
		})
		for !begun.Load() {
			runtime.Gosched()
		}
		for range 1000 {
			runtime.Gosched() // let it come as far as it can
		}
		close(old.answer)
		group.Wait()
	}
}

// A newcomer looks at an entry that was just said to stay again, and not before
// the others.
func TestTableAsksEveryoneInTurn(t *testing.T) {
	table := local.NewTable[*thing](3)
	var all [3]*thing
	for i := range all {
		all[i] = stayer(table, fmt.Sprint(i))
	}
	add(table, "newcomer") // six steps: each is asked twice
	for i, e := range all {
		if got := e.asked.Load(); got != 2 {
			t.Errorf("entry %d was asked %d times, want 2", i, got)
		}
	}
	table.Get("1") // a mark each: skipped once
	table.Get("1")
	add(table, "newcomer")
	for i, want := range []int64{4, 3, 4} {
		if got := all[i].asked.Load(); got != want {
			t.Errorf("then entry %d was asked %d times, want %d", i, got, want)
		}
	}
}

func TestTableGetOfManyKeysAllocatesNothing(t *testing.T) {
	const keys = 10_000
	table := local.NewTable[*thing](keys)
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprint("user:", i)
		add(table, names[i])
	}
	i := 0
	if n := testing.AllocsPerRun(2*keys, func() { table.Get(names[i%keys]); i++ }); n != 0 {
		t.Errorf("Get allocates %v times", n)
	}
}

// A key costs the table little besides the key's own bytes and its entry, which
// are the caller's.
func TestTableNeedsLittleMemoryPerKey(t *testing.T) {
	const keys = 30_000
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprint("user:", i)
	}
	entry := &thing{}
	before := heap()
	table := local.NewTable[*thing](keys)
	for _, name := range names {
		table.GetOrAdd(name, func() *thing { return entry })
	}
	if per := float64(heap()-before) / float64(table.Len()); per > 100 {
		t.Errorf("%.0f bytes per key, want 100 at most", per)
	} else {
		t.Logf("%.0f bytes per key", per)
	}
	runtime.KeepAlive(names)
}

// heap is how many bytes are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what finalizers and pools held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
