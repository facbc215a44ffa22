package hybrid_test

import (
	"sync"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// TestWhatAnOutageAdmittedIsChargedOnce: as far as the bucket of the outage has not
// gained it back, and not again with later messages.
func TestWhatAnOutageAdmittedIsChargedOnce(t *testing.T) {
	for _, tt := range []struct {
		taken  int
		pause  time.Duration // before Redis is back
		charge int
	}{
		{0, 0, 0},
		{1, 0, 1},
		{20, 0, 20},
		{25, 0, 25},
		{20, 15 * 40 * time.Second, 5}, // four instances: one token in 40 s
		{20, 21 * 40 * time.Second, 0},
	} {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			limit := hybrid.Per(1, 10*time.Second).WithBurst(100)
			lim := start(t, r, limit, hybrid.WithExpectedInstances(4))
			r.FailWith("LOADING Redis is loading the dataset in memory")
			trip(t, lim)
			for range tt.taken {
				want(t, "in the outage", allow(t, lim).Allowed, true)
			}
			time.Sleep(tt.pause)
			r.Heal()
			time.Sleep(3 * time.Second) // and no other instance can be degraded
			allow(t, lim)
			settle()
			want(t, "left", peek(t, lim).Remaining, 99-tt.charge)
			allow(t, lim)
			want(t, "left later", peek(t, lim).Remaining, 98-tt.charge)
		})
	}
}

// TestAnOutageIsToldOfAlsoWhenItIsRefused: for a moment after an outage an instance
// takes no more than it did in it, and the root hears of the outage all the same.
func TestAnOutageIsToldOfAlsoWhenItIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		limit := hybrid.PerHour(1).WithBurst(100)
		lim, other := start(t, r, limit, hybrid.WithExpectedInstances(4)), start(t, r, limit)
		r.FailWith("LOADING Redis is loading the dataset in memory")
		trip(t, lim)
		want(t, "in the outage", drain(t, lim, "k"), 25)
		r.Heal()
		time.Sleep(time.Second)
		res := allow(t, lim)
		want(t, "just after it", res.Source, hybrid.SourcePrefilter)
		settle()
		want(t, "left", peek(t, other).Remaining, 75)
		time.Sleep(res.RetryAfter)
		want(t, "when that is over", allow(t, lim).Allowed, true)
	})
}

// TestJustAfterAnOutageAnInstanceTakesItsPart, and all there is a little later.
func TestJustAfterAnOutageAnInstanceTakesItsPart(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		limit := hybrid.PerHour(1).WithBurst(100)
		lim := start(t, r, limit, hybrid.WithExpectedInstances(4))
		r.FailWith("LOADING Redis is loading the dataset in memory")
		trip(t, lim)
		for range 5 {
			allow(t, lim)
		}
		r.Heal()
		time.Sleep(time.Second)
		want(t, "of a key that the outage saw", drain(t, lim, "k"), 20)
		want(t, "of another one", drain(t, lim, "fresh"), 25)
		time.Sleep(2 * time.Second)
		want(t, "later", drain(t, lim, "k"), 75)
		want(t, "later, of another one", drain(t, lim, "fresh"), 75)
	})
}

// TestALostBucketGoesOnWhereItWasSeen is about data that is gone from Redis while
// its clients are not: evicted, or flushed by somebody.
func TestALostBucketGoesOnWhereItWasSeen(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		var (
			mu   sync.Mutex
			lost []hybrid.StateLost
		)
		limit := hybrid.PerHour(3600).WithBurst(10_000)
		lim := start(t, r, limit, hybrid.WithEvents(func(e hybrid.Event) {
			if e, ok := e.(hybrid.StateLost); ok {
				mu.Lock()
				defer mu.Unlock()
				lost = append(lost, e)
			}
		}))
		allowN(t, lim, "k", 9_000)
		time.Sleep(10 * time.Second)
		r.Miniredis().FlushAll()
		want(t, "9000 of 1010", allowN(t, lim, "k", 9_000).Allowed, false)
		want(t, "1010 of 1010", allowN(t, lim, "k", 1_010).Allowed, true)
		settle()
		want(t, "lost", lim.Stats().StateLost, 1)
		mu.Lock()
		want(t, "events", len(lost), 1)
		want(t, "left", lost[0].Left, 1010)
		mu.Unlock()

		// What may have been full was not lost.
		time.Sleep(2*time.Hour + 50*time.Minute)
		want(t, "a full bucket", allowN(t, lim, "k", 10_000).Allowed, true)
		time.Sleep(2*time.Hour + 50*time.Minute)
		r.Miniredis().FlushAll()
		want(t, "a full bucket", allowN(t, lim, "k", 10_000).Allowed, true)
		want(t, "lost", lim.Stats().StateLost, 1)
	})
}

// TestAStrictOutageStartsEmpty and never rounds a part of the burst up.
func TestAStrictOutageStartsEmpty(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(100), hybrid.WithStrictOutage(), hybrid.WithExpectedInstances(4))
		small := start(t, r, hybrid.PerSecond(3), hybrid.WithStrictOutage(), hybrid.WithExpectedInstances(4))
		r.Kill()
		trip(t, lim)
		trip(t, small)
		want(t, "at once", drain(t, lim, "k"), 0)
		time.Sleep(400 * time.Millisecond)
		want(t, "after 400 ms at 25 per second", drain(t, lim, "k"), 10)
		time.Sleep(10 * time.Second)
		want(t, "after a rest", drain(t, lim, "k"), 25)
		res := allow(t, small)
		if res.Allowed || res.RetryAfter <= 0 || res.Source != hybrid.SourceDegraded {
			t.Errorf("less than one request is no request: %+v", res)
		}
		res = peek(t, small)
		want(t, "peek", res.Allowed, false)
	})
}

// TestOutagesThatComeAndGoAddNothing: however often Redis comes and goes, the
// windows stay as for one outage.
func TestOutagesThatComeAndGoAddNothing(t *testing.T) {
	const rate = 300
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		f := strike(t, r, 4, hybrid.PerSecond(rate), 20*time.Second, evenly(4), func(*struck) {
			for range 5 {
				time.Sleep(1500 * time.Millisecond)
				r.Freeze()
				time.Sleep(1500 * time.Millisecond)
				r.Thaw()
			}
		})
		run := fleetRun{admitted: f.admitted}
		if x := run.excess(rate); x > 1.5*rate {
			t.Errorf("a window admits %.0f above the rate", x)
		}
		within(t, "in all", f.between(time.Second, 20*time.Second), 19*rate, 0.85, 1.05)
		t.Logf("excess %.0f", run.excess(rate))
	})
}
