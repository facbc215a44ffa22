package local_test

import (
	"fmt"
	"sync"
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
