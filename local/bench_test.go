package local_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/resilient-go/limiter/local"
)

func BenchmarkLeaseTake(b *testing.B) {
	l := granted(1 << 60)
	b.Run("alone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			l.Take(1, 1)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				l.Take(1, 1)
			}
		})
	})
}

func BenchmarkTableGet(b *testing.B) {
	const keys = 100_000
	table := local.NewTable[*thing](keys)
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprint("user:", i)
		add(table, names[i])
	}
	b.Run("one key", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			table.Get(names[0])
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				table.Get(names[i%keys])
			}
		})
	})
}

// BenchmarkPath is what a decision of a lease costs by the number of keys, without
// the making of its result: a clock read, a look-up, and a token off a lease. The
// table's part of the memory is told per key.
func BenchmarkPath(b *testing.B) {
	for _, keys := range []int{1, 1000, 100_000, many(300_000, 1_000_000)} {
		names := make([]string, keys)
		for i := range names {
			names[i] = fmt.Sprint("user:", i)
		}
		rand.Shuffle(keys, func(i, j int) { names[i], names[j] = names[j], names[i] })
		leases := make([]holder, keys)
		for i := range leases {
			leases[i].lease.Grant(0, 1<<40, int64(time.Hour), int64(time.Hour), 0)
		}
		before := heap()
		table := local.NewTable[*holder](2 * keys)
		for i, name := range names {
			table.GetOrAdd(name, func() *holder { return &leases[i] })
		}
		perKey := float64(heap()-before) / float64(keys)
		epoch := time.Now()
		take := func(key string) {
			now := int64(time.Since(epoch))
			h, ok := table.Get(key)
			if !ok {
				panic("a key is gone")
			}
			h.lease.Take(now, 1)
		}
		for range 3 { // warm
			for _, name := range names {
				take(name)
			}
		}
		b.Run(fmt.Sprint(keys, " keys/serial"), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				take(names[i%keys])
			}
			b.ReportMetric(perKey, "B/key")
		})
		b.Run(fmt.Sprint(keys, " keys/parallel"), func(b *testing.B) {
			var offset atomic.Int64
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for i := int(offset.Add(int64(keys) / 3)); pb.Next(); i++ {
					take(names[i%keys])
				}
			})
		})
	}
}

// holder is an entry that holds a lease.
type holder struct {
	lease local.Lease
	_     [192]byte // what a key has besides
}

func (*holder) Retire() bool { return false }

// BenchmarkQuotaTake stands beside what a user of x/time/rate pays, clock and
// lock included on both sides.
func BenchmarkQuotaTake(b *testing.B) {
	epoch := time.Now()
	b.Run("quota", func(b *testing.B) {
		q := local.NewQuota(1e9, 1e9, 1e9, 0)
		var mu sync.Mutex
		b.ReportAllocs()
		for b.Loop() {
			mu.Lock()
			q.Take(1, int64(time.Since(epoch)))
			mu.Unlock()
		}
	})
	b.Run("rate.Limiter", func(b *testing.B) {
		l := rate.NewLimiter(1e9, 1e9)
		b.ReportAllocs()
		for b.Loop() {
			l.Allow()
		}
	})
}

func BenchmarkShareTake(b *testing.B) {
	s := local.NewShare(1e9, 1e9, 0)
	b.ReportAllocs()
	var now int64
	for b.Loop() {
		now += 10
		s.Advance(now)
		s.Take(1)
	}
}
