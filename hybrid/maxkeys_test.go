package hybrid_test

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

func TestKeysBeyondTheBoundAreDecidedByRedis(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerHour(3), hybrid.WithMaxKeys(16))
		for round := range 4 {
			for k := range runs(300, 3000) {
				res := allowN(t, lim, fmt.Sprint(k), 1)
				if res.Allowed != (round < 3) || res.Source == hybrid.SourceDegraded {
					t.Fatalf("request %d of key %d: %+v", round, k, res)
				}
			}
		}
		s := lim.Stats()
		if s.Keys > 16 {
			t.Errorf("%d keys remembered of at most 16", s.Keys)
		}
		want(t, "some were forgotten", s.Evicted > 0, true)
	})
}

func TestForgottenKeyGivesItsLeaseBack(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		limit := hybrid.PerHour(1).WithBurst(1000)
		lim, other := start(t, r, limit, hybrid.WithMaxKeys(1)), start(t, r, limit)
		every(t, lim, 100, time.Millisecond, func(hybrid.Result) {})
		want(t, "something is held", peek(t, other).Remaining < 900, true)
		for k := range 3 { // the first one finds it in use
			allowN(t, lim, fmt.Sprint(k), 1)
		}
		settle()
		want(t, "evicted", lim.Stats().Evicted > 0, true)
		want(t, "what another instance sees", peek(t, other).Remaining, 900)
		s := lim.Stats()
		want(t, "decisions", decisions(s), 103)
		want(t, "granted", s.TokensGranted, s.TokensReturned+s.Allowed[hybrid.SourceLease])
	})
}

// TestFloodOfKeysOpensNoLimit has somebody who has used up his limit send ten
// thousand other keys, so that his own may be forgotten.
func TestFloodOfKeysOpensNoLimit(t *testing.T) {
	for _, flood := range []int{50, 200, 10_000} {
		for _, before := range []bool{false, true} { // did he use it up before the outage?
			bubble(t, func(t *testing.T, r *redistest.Mini) {
				lim := start(t, r, hybrid.PerHour(100), hybrid.WithMaxKeys(100), hybrid.WithExpectedInstances(2))
				warm(t, lim)
				if before {
					want(t, "of Redis", drain(t, lim, "victim"), 100)
				}
				r.Kill()
				trip(t, lim)
				if !before {
					want(t, "of the share", drain(t, lim, "victim"), 50)
				}
				for k := range flood {
					allowN(t, lim, fmt.Sprint("flood ", k), 1)
				}
				want(t, fmt.Sprintf("after %d keys, used up before: %v", flood, before), drain(t, lim, "victim"), 0)
				if n := lim.Stats().Keys; n > 100 {
					t.Errorf("%d keys remembered of at most 100", n)
				}
			})
		}
	}
}

func TestKeysBeyondTheBoundShareBucketsInAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		r.Kill()
		lim := start(t, r, hybrid.PerHour(4), hybrid.WithMaxKeys(10))
		trip(t, lim)
		admitted := 0
		for k := range 10_000 {
			if allowN(t, lim, fmt.Sprint(k), 1).Allowed {
				admitted++
			}
		}
		// Ten keys have their own bucket, all others share 64 of 4.
		if admitted > 10+64*4 || admitted < 64*4-8 {
			t.Errorf("%d of 10000 keys admitted, want about %d", admitted, 9+64*4)
		}
		want(t, "untracked", lim.Stats().Untracked >= 10_000-10, true)
	})
}

// Somebody sends keys that nobody has ever sent, in an outage or not: memory and
// goroutines stay what they are, who has used up his limit has used it up, others get
// theirs where Redis is well, and it is told.
func TestMemoryUnderAFloodOfKeys(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for _, c := range []struct {
		name        string
		most, flood int
		well        bool
	}{
		{"in an outage", runs(5000, 100_000), runs(30_000, 5_000_000), false},
		{"a Redis that is well", runs(500, 100_000), runs(1500, 1_000_000), true},
	} {
		most := c.most
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *redistest.Mini) {
				full := 0
				lim := start(t, r, hybrid.PerHour(20), hybrid.WithMaxKeys(most), hybrid.WithExpectedInstances(2), hybrid.WithNearLimit(1),
					hybrid.WithEvents(func(e hybrid.Event) {
						if _, ok := e.(hybrid.TableFull); ok {
							full++
						}
					}))
				warm(t, lim)
				want(t, "of the known key", drain(t, lim, "known"), 20)
				if !c.well {
					r.Kill()
					trip(t, lim)
				}
				var key [16]byte
				flood := func(n int) {
					for range n {
						binary.LittleEndian.PutUint64(key[:], binary.LittleEndian.Uint64(key[:])+1)
						if _, err := lim.Allow(t.Context(), string(key[:])); err != nil {
							t.Fatal(err)
						}
					}
				}
				flood(most + most/20) // the table is full
				before, routines := heap(), runtime.NumGoroutine()
				flood(c.flood - most - most/20)
				if c.well { // what the server keeps of them is its own
					r.Miniredis().FlushAll()
				}
				if more := heap() - before; !c.well && more > 4<<20 {
					t.Errorf("%d further keys take %d more bytes of memory", c.flood-most, more)
				}
				if n := runtime.NumGoroutine(); n > routines+16 {
					t.Errorf("%d goroutines, and there were %d", n, routines)
				}
				if n := lim.Stats().Keys; n > most {
					t.Errorf("%d keys are remembered, want %d at most", n, most)
				}
				if !c.well {
					want(t, "of the known key, later", drain(t, lim, "known"), 0)
				} else {
					want(t, "of a new key", drain(t, lim, "new"), 20)
				}
				settle()
				want(t, "told that there is no room", full >= 1, !c.well) // a Redis that is well remembers what is forgotten here
				t.Logf("%d keys remembered in %d bytes a key, with what the test needs", lim.Stats().Keys, before/int64(most))
			})
		})
	}
}
