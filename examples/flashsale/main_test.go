package main

import (
	"io"
	"path/filepath"
	"sync"
	"testing"

	"github.com/resilient-go/limiter/internal/redistest"
	"github.com/resilient-go/limiter/internal/transcript"
)

func TestMain(m *testing.M) {
	redistest.SilenceClientLog()
	m.Run()
}

// Exactly the stock is sold, and the database hears of no more than the limit, with
// an embedded Redis and a real one.
func TestSaleSellsOut(t *testing.T) {
	for name, url := range map[string]string{"embedded": "", "server": "redis://" + redistest.Server(t).Addr()} {
		t.Run(name, func(t *testing.T) {
			o, err := run(t.Context(), io.Discard, url)
			if err != nil {
				t.Fatal(err)
			}
			if o.orders != stock || o.left != 0 {
				t.Errorf("%d orders, %d pieces left; want %d and none", o.orders, o.left, stock)
			}
			if o.reached+o.refused != customers*waves {
				t.Errorf("%d reached the database and %d were refused, of %d", o.reached, o.refused, customers*waves)
			}
			// A machine that stands still can make an outage of it, in which each instance
			// has a third of the limit besides.
			most := 2 * (limit.Burst() + int(o.length.Seconds()*float64(limit.Count())) + 1)
			if o.reached < 2*stock || o.reached > most {
				t.Errorf("%d reached the database in %v, want at most %d", o.reached, o.length, most)
			}
		})
	}
}

func TestOutputIsThatOfTheReadme(t *testing.T) {
	transcript.Check(t, func(out io.Writer) error { _, err := run(t.Context(), out, ""); return err },
		`(?m)^(\d+) (?:refused|reached)`)
}

// Without the limiter the lock alone keeps the stock right, however many are in a hurry.
func TestLockKeepsTheStock(t *testing.T) {
	shop, err := open(t.Context(), filepath.Join(t.TempDir(), "shop.db"), stock)
	if err != nil {
		t.Fatal(err)
	}
	defer shop.close()
	var mu sync.Mutex
	var all sync.WaitGroup
	sold := 0
	for customer := range 100 {
		all.Go(func() {
			ok, err := shop.buy(t.Context(), customer)
			if err != nil {
				t.Error(err)
			}
			if ok {
				mu.Lock()
				sold++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	orders, left, err := shop.count(t.Context())
	if err != nil || orders != stock || sold != stock || left != 0 {
		t.Errorf("%d sold, %d orders, %d left, %v; want %d, %d and none", sold, orders, left, err, stock, stock)
	}
}

// A version that is no longer the newest sells nothing.
func TestOldVersionSellsNothing(t *testing.T) {
	shop, err := open(t.Context(), filepath.Join(t.TempDir(), "shop.db"), stock)
	if err != nil {
		t.Fatal(err)
	}
	defer shop.close()
	for i, want := range []bool{true, false} {
		if sold, err := shop.take(t.Context(), i, 0); err != nil || sold != want {
			t.Errorf("try %d with version 0: %v, %v; want %v", i+1, sold, err, want)
		}
	}
	if orders, left, err := shop.count(t.Context()); err != nil || orders != 1 || left != stock-1 {
		t.Errorf("%d orders, %d left, %v", orders, left, err)
	}
}
