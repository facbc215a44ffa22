package hybrid_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// TestNearLimitIsToldOncePerPeriodAndKey at the first decision of Redis that finds
// four fifths gone, not before.
func TestNearLimitIsToldOncePerPeriodAndKey(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		var mu sync.Mutex
		var told []string
		begun := time.Now()
		lim := start(t, r, hybrid.PerMinute(10), hybrid.WithEvents(func(e hybrid.Event) {
			if n, ok := e.(hybrid.NearLimit); ok {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, fmt.Sprintf("%v %v %s %d", n.At.Sub(begun), n.Limit, n.Key, n.Left))
			}
		}))
		tell := func() string {
			settle()
			mu.Lock()
			defer mu.Unlock()
			return fmt.Sprint(told)
		}
		allowN(t, lim, "k", 7)
		want(t, "at 70 %", tell(), "[]")
		allowN(t, lim, "k", 1)
		want(t, "at 80 %", tell(), "[0s 10/m rl:{10/m:k} 2]")
		for range 4 {
			allowN(t, lim, "k", 1)
		}
		allowN(t, lim, "other", 10)
		want(t, "again, and another key", tell(), "[0s 10/m rl:{10/m:k} 2 0s 10/m rl:{10/m:other} 0]")
		time.Sleep(time.Minute - 1)
		allowN(t, lim, "k", 10)
		time.Sleep(time.Nanosecond)
		want(t, "within a minute", lim.Stats().NearLimit, 2)
		allowN(t, lim, "k", 9)
		want(t, "after a minute", lim.Stats().NearLimit, 3)
	})
}

func TestNearLimitAtAnotherPart(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerMinute(10), hybrid.WithNearLimit(0.5))
		allowN(t, lim, "k", 4)
		want(t, "at 40 %", lim.Stats().NearLimit, 0)
		allowN(t, lim, "k", 1)
		want(t, "at half", lim.Stats().NearLimit, 1)
	})
}

// TestStatsOfCalls tells operations apart, and how long they took.
func TestStatsOfCalls(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerMinute(10))
		allowN(t, lim, "k", 1)
		r.Delay(3 * time.Millisecond)
		allowN(t, lim, "k", 5)
		peek(t, lim)
		if err := lim.Reset(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		s := lim.Stats()
		want(t, "calls", fmt.Sprint(s.RedisCallsByOperation), "map[acquire:map[none:2] announce:map[] peek:map[none:1] reset:map[none:1]]")
		took := s.RedisSeconds["acquire"]
		want(t, "ranges", fmt.Sprint(took.Bounds), "[0.0001 0.00025 0.0005 0.001 0.0025 0.005 0.01 0.025 0.05 0.1 0.25 1]")
		want(t, "acquire", fmt.Sprint(took.Counts, took.Sum), "[1 0 0 0 0 1 0 0 0 0 0 0 0] 0.003")
		// A script that is new there takes two round trips.
		want(t, "peek", fmt.Sprint(s.RedisSeconds["peek"].Counts), "[0 0 0 0 0 0 1 0 0 0 0 0 0]")
	})
}

// TestStatsOfWhatWasLeft counts each decision once, where its bucket stood.
func TestStatsOfWhatWasLeft(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerHour(10))
		for range 11 { // ten pass and one is refused
			allowN(t, lim, "k", 1)
		}
		left := lim.Stats().BucketLeft
		want(t, "ranges", fmt.Sprint(left.Bounds), "[0 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9]")
		want(t, "decisions", fmt.Sprint(left.Counts), "[2 1 1 1 1 1 1 1 1 1 0]")
	})
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(1000))
		every(t, lim, 1000, time.Millisecond, func(hybrid.Result) {})
		time.Sleep(time.Second) // the lease is given back: all is told
		s, all := lim.Stats(), uint64(0)
		for _, n := range s.BucketLeft.Counts {
			all += n
		}
		want(t, "with leases", all, 1000)
		want(t, "spent", s.TokensSpent, s.Allowed[hybrid.SourceLease])
		want(t, "granted", s.TokensGranted, s.TokensSpent+s.TokensReturned+s.TokensExpired)
	})
}
