package local_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/resilient-go/limiter/local"
)

// thing is an entry that may be told to stay.
type thing struct {
	key   string
	stay  atomic.Bool
	asked atomic.Int64
}

func (e *thing) Retire() bool {
	e.asked.Add(1)
	return !e.stay.Load()
}

// add returns the entry of a key, or nil if there is no room.
func add(t *local.Table[*thing], key string) *thing {
	e, ok := t.GetOrAdd(key, func() *thing { return &thing{key: key} })
	if !ok {
		return nil
	}
	return e
}

// stayer is add for an entry that stays.
func stayer(t *local.Table[*thing], key string) *thing {
	e, _ := t.GetOrAdd(key, func() *thing {
		e := &thing{key: key}
		e.stay.Store(true)
		return e
	})
	return e
}

func TestTableRemembersKeys(t *testing.T) {
	table := local.NewTable[*thing](10)
	if _, ok := table.Get("a"); ok || table.Len() != 0 {
		t.Fatal("a new table knows a key")
	}
	a, b := add(table, "a"), add(table, "b")
	if a == nil || b == nil || a == b || a.key != "a" || b.key != "b" {
		t.Fatalf("two keys have the entries %p and %p", a, b)
	}
	if got := add(table, "a"); got != a {
		t.Error("a second GetOrAdd made another entry")
	}
	if got, ok := table.Get("b"); !ok || got != b {
		t.Error("Get does not find an entry")
	}
	if _, ok := table.Get(""); ok {
		t.Error("Get finds a key that nobody added")
	}
	if table.Len() != 2 || table.Evicted() != 0 {
		t.Errorf("the table has %d keys and evicted %d, want 2 and 0", table.Len(), table.Evicted())
	}
}

func TestSmallTablesHoldExactlyTheirLimit(t *testing.T) {
	for limit := range 128 {
		table := local.NewTable[*thing](limit)
		for i := range 3 * limit {
			if got, want := stayer(table, fmt.Sprint(i)) != nil, i < limit; got != want {
				t.Fatalf("limit %d: key %d found room: %v, want %v", limit, i+1, got, want)
			}
		}
		if table.Len() != limit || table.Evicted() != 0 {
			t.Errorf("limit %d: %d keys, %d evicted", limit, table.Len(), table.Evicted())
		}
	}
}

func TestTableForgetsNobodyWhoStays(t *testing.T) {
	table := local.NewTable[*thing](5)
	var kept [5]*thing
	for i := range kept {
		kept[i] = stayer(table, fmt.Sprint(i))
	}
	for i := range 1000 {
		e, ok := table.GetOrAdd(fmt.Sprint("newcomer ", i), func() *thing {
			t.Error("an entry was made without room for it")
			return nil
		})
		if ok || e != nil {
			t.Fatalf("newcomer %d found room", i)
		}
	}
	for i, want := range kept {
		if got, ok := table.Get(fmt.Sprint(i)); !ok || got != want {
			t.Errorf("key %d is gone", i)
		}
	}
	kept[3].stay.Store(false)
	for range 3 { // its mark, then its turn
		add(table, "late")
	}
	if _, ok := table.Get("late"); !ok {
		t.Error("a newcomer found no room when one could go")
	}
	if _, ok := table.Get("3"); ok || table.Len() != 5 || table.Evicted() != 1 {
		t.Errorf("then there are %d keys, %d evicted", table.Len(), table.Evicted())
	}
}

func TestTableKeepsKeysInUse(t *testing.T) {
	const limit, busy = 100, 50
	table := local.NewTable[*thing](limit)
	var kept [busy]*thing
	for i := range kept {
		kept[i] = add(table, fmt.Sprint("busy ", i))
	}
	for i := range many(3000, 1_000_000) {
		for k := range kept {
			table.Get(fmt.Sprint("busy ", k))
		}
		if e := add(table, fmt.Sprint(i)); e == nil && i < limit-busy {
			t.Fatalf("newcomer %d found no room", i)
		}
	}
	for i, want := range kept {
		if got, ok := table.Get(fmt.Sprint("busy ", i)); !ok || got != want {
			t.Errorf("busy key %d was forgotten", i)
		}
	}
	if table.Evicted() == 0 {
		t.Error("no newcomer was ever forgotten for another")
	}
}

// One newcomer looks at a few entries and not at all of them.
func TestTableLooksForRoomWithinBounds(t *testing.T) {
	table := local.NewTable[*thing](100)
	var all []*thing
	for i := range 100 {
		all = append(all, stayer(table, fmt.Sprint(i)))
	}
	asked := func() (sum int64) {
		for _, e := range all {
			sum += e.asked.Load()
		}
		return sum
	}
	for i := range 100 {
		before := asked()
		add(table, fmt.Sprint("newcomer ", i))
		if got := asked() - before; got > 16 {
			t.Fatalf("newcomer %d asked %d entries, want 16 at most", i, got)
		}
	}
	for _, e := range all {
		if e.asked.Load() == 0 {
			t.Fatal("an entry was never asked to go")
		}
	}
}

func TestTableMakesOneEntryForAllWhoComeAtOnce(t *testing.T) {
	keys := many(20_000, 1_000_000)
	table := local.NewTable[*thing](4 * keys)
	var (
		made  atomic.Int64
		group sync.WaitGroup
		got   [4][]*thing
	)
	for g := range got {
		group.Go(func() {
			for i := range keys {
				e, _ := table.GetOrAdd(fmt.Sprint(i), func() *thing {
					made.Add(1)
					return &thing{}
				})
				got[g] = append(got[g], e)
			}
		})
	}
	group.Wait()
	if made.Load() != int64(keys) || table.Len() != keys {
		t.Errorf("%d entries were made for %d keys, %d counted", made.Load(), keys, table.Len())
	}
	for g := range got {
		if !slices.Equal(got[g], got[0]) {
			t.Error("two callers got different entries for one key")
		}
	}
}

func TestTableGetAllocatesNothing(t *testing.T) {
	table := local.NewTable[*thing](1000)
	add(table, "user:10001")
	key := strings.Repeat("user:1000", 1) + "1"
	for _, k := range []string{key, "nobody"} {
		if n := testing.AllocsPerRun(1000, func() { table.Get(k) }); n != 0 {
			t.Errorf("Get(%q) allocates %v times", k, n)
		}
	}
}
