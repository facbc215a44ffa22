package local_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/resilient-go/limiter/local"
)

// A crowd counts its members and when they left.
type crowd struct {
	live, most atomic.Int64
	moment     atomic.Int64
}

type member struct {
	crowd *crowd
	key   string
	left  atomic.Int64 // the moment, 0 while it has not
	loyal bool         // it does not want to leave
}

func (m *member) Retire() bool {
	if m.loyal && rand.IntN(4) > 0 {
		return false
	}
	m.crowd.live.Add(-1)
	if m.left.Swap(m.crowd.moment.Add(1)) != 0 {
		panic("an entry was retired twice")
	}
	return true
}

func (c *crowd) join(key string) *member {
	n := c.live.Add(1)
	for {
		most := c.most.Load()
		if n <= most || c.most.CompareAndSwap(most, n) {
			return &member{crowd: c, key: key, loyal: rand.IntN(4) == 0}
		}
	}
}

func TestTableUnderManyGoroutines(t *testing.T) {
	for _, limit := range []int{1, 10, 1000} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) { tableStorm(t, limit, many(13_000, 1_000_000)) })
	}
}

// tableStorm has eight goroutines use random keys while another visits all.
func tableStorm(t *testing.T, limit, keys int) {
	var (
		c       crowd
		table   = local.NewTable[*member](limit)
		workers sync.WaitGroup
		over    = make(chan struct{})
		visitor sync.WaitGroup
		outside atomic.Int64
	)
	for g := range uint64(8) {
		rnd := rand.New(rand.NewPCG(g, uint64(limit)))
		workers.Go(func() {
			for range keys {
				key := fmt.Sprint(rnd.Int64N(1 + rnd.Int64N(int64(keys)))) // some far more often
				before := c.moment.Load()
				m, ok := table.Get(key)
				if !ok {
					m, ok = table.GetOrAdd(key, func() *member { return c.join(key) })
				}
				if !ok {
					outside.Add(1)
					continue
				}
				if m.key != key {
					t.Errorf("asked for %q, got %q", key, m.key)
				}
				if left := m.left.Load(); left != 0 && left <= before {
					t.Errorf("%q was handed out after it was retired", key)
				}
				if n := table.Len(); n > limit {
					t.Errorf("the table has %d keys of %d", n, limit)
				}
			}
		})
	}
	visitor.Go(func() {
		for visits := 0; ; visits++ {
			select {
			case <-over:
				if visits > 0 {
					return
				}
			default:
			}
			n := 0
			table.All(func(m *member) {
				if m.key == "" {
					t.Error("All shows an entry that is none")
				}
				n++
			})
			if n > limit {
				t.Errorf("All shows %d entries of %d", n, limit)
			}
		}
	})
	workers.Wait()
	close(over)
	visitor.Wait()

	if most := c.most.Load(); most > int64(limit) {
		t.Errorf("%d entries lived at once, want %d at most", most, limit)
	}
	if live := c.live.Load(); live != int64(table.Len()) || live != int64(limit) {
		t.Errorf("%d entries live, the table counts %d of %d", live, table.Len(), limit)
	}
	if got, want := table.Evicted(), uint64(c.moment.Load()); got != want {
		t.Errorf("the table evicted %d, %d were retired", got, want)
	}
	if limit < 10 && outside.Load() == 0 {
		t.Error("nobody ever stayed outside")
	}
}

// Whoever is there all the time is seen by each visit exactly once, whatever
// others do meanwhile.
func TestTableAllWhileOthersWrite(t *testing.T) {
	const residents = 500
	table := local.NewTable[*thing](2000)
	for i := range residents {
		if stayer(table, fmt.Sprint("resident ", i)) == nil {
			t.Fatal("no room")
		}
	}
	var (
		writers sync.WaitGroup
		over    atomic.Bool
	)
	for g := range 4 {
		writers.Go(func() {
			for i := 0; !over.Load(); i++ {
				add(table, fmt.Sprint(g, " ", i))
			}
		})
	}
	for range many(200, 5000) {
		seen := map[*thing]int{}
		table.All(func(e *thing) {
			seen[e]++
			if e.stay.Load() {
				table.Get(e.key) // the table may be used meanwhile
			}
		})
		found := 0
		for e, n := range seen {
			if n != 1 {
				t.Errorf("%q was seen %d times", e.key, n)
			}
			if e.stay.Load() {
				found++
			}
		}
		if found != residents {
			t.Fatalf("%d of %d residents were seen", found, residents)
		}
	}
	over.Store(true)
	writers.Wait()
}
