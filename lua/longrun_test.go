package lua_test

import (
	"math/big"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/resilient-go/limiter/internal/redistest"
)

// However often it is asked, a bucket grants what its rate promises, but for the
// token that has not come together yet. The clock is the bubble's, which the
// scripts read as they do in production.
func TestGrantsKeepUpWithTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &miniServer{rdb: redistest.Bubble(t).Client()}
		rapid.Check(inBubble{t}, func(rt *rapid.T) {
			count := rapid.Int64Range(1, 5000).Draw(rt, "count")
			period := rapid.SampledFrom([]time.Duration{time.Second, 3 * time.Second, time.Minute, 1900 * time.Millisecond}).Draw(rt, "period")
			interval := time.Duration(rapid.Int64Range(1, 500_000).Draw(rt, "interval in us")) * time.Microsecond
			keepsUp(rt, s, count, period, interval)
		})
	})
}

func TestHundredPerSecondAskedEvery15ms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &miniServer{rdb: redistest.Bubble(t).Client()}
		keepsUp(t, s, 100, time.Second, 15*time.Millisecond)
	})
}

// keepsUp polls for all there is, at an interval, and counts.
func keepsUp(t tb, s *miniServer, count int64, period, interval time.Duration) {
	const polls = 60
	// Room for what accrues between two polls: nothing is lost at the brim.
	room := ceil(new(big.Rat).Mul(rat(interval.Microseconds()), per(count, period, 1).rate())) / unit
	l := per(count, period, room+2)
	w := &world{tb: t, server: s, key: "rl:{longrun}"}
	w.client().Del(t.Context(), w.key)
	m := ask(l, 1, l.burst/unit)
	total := w.quietly(m).granted[0] - l.burst/unit // empty from here on
	begun := time.Now()
	synctest.Wait() // fails out of a bubble
	for range polls {
		time.Sleep(interval)
		total += w.quietly(m).granted[0]
	}
	elapsed := time.Since(begun)
	exact := new(big.Rat).Mul(rat(elapsed.Microseconds()), l.rate())
	exact.Quo(exact, rat(unit))
	// At most the fraction of one token is still in the bucket.
	if least := ceil(exact) - 1; total < least || total > floor(exact) {
		t.Fatalf("%d granted in %v, want %d to %d", total, elapsed, least, floor(exact))
	}
}
