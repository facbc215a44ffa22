package hybrid_test

import (
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// In an outage this instance's part books ahead, up to its own burst.
func TestReserveInAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(20), hybrid.WithExpectedInstances(2))
		r.Kill()
		trip(t, lim)
		for i, delay := range []time.Duration{0, 0, 500 * time.Millisecond, time.Second} {
			b := reserve(t, lim, "k", 5)
			want(t, "source", b.Result().Source, hybrid.SourceDegraded)
			want(t, "delay", b.Delay(), delay)
			if i == 3 {
				time.Sleep(100 * time.Millisecond)
				want(t, "given back", b.Cancel(), 5)
			}
		}
		want(t, "a debt of 4 is left", reserve(t, lim, "k", 6).Delay(), time.Second)
		want(t, "retry after", booked(t, lim, "k", 2), 200*time.Millisecond)
		want(t, "nobody else is admitted", allowN(t, lim, "k", 1).Allowed, false)
		if _, err := lim.Reserve(t.Context(), hybrid.Request{Key: "k", N: 11}); err == nil {
			t.Error("more than this instance's burst was booked")
		}
	})
}

func TestSettleInAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerHour(20), hybrid.WithExpectedInstances(2))
		r.Kill()
		trip(t, lim)
		b := reserve(t, lim, "k", 8)
		want(t, "error", b.Settle(3), nil)
		want(t, "left of ten", left(t, lim, "k"), 7)
		want(t, "error", b.Settle(14), nil)
		want(t, "in debt", reserve(t, lim, "k", 6).Delay().Round(time.Second), time.Hour)
		want(t, "error", b.Settle(16), nil) // a debt of ten, and two beyond
		want(t, "unaccounted", lim.Stats().TokensUnaccounted, 2)
		want(t, "error", b.Settle(0), nil)
		want(t, "left", left(t, lim, "k"), 6)
	})
}

// The policies that are no bucket have nothing to correct.
func TestReserveWithOtherOutagePolicies(t *testing.T) {
	for policy, allowed := range map[hybrid.OutagePolicy]bool{hybrid.FailOpen: true, hybrid.FailClosed: false} {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			lim := start(t, r, slow, hybrid.WithOutagePolicy(policy))
			r.Kill()
			trip(t, lim)
			b, err := lim.Reserve(t.Context(), hybrid.Request{Key: "k", N: 3})
			want(t, "admitted", err == nil, allowed)
			if err == nil {
				want(t, "error", b.Settle(1), nil)
				want(t, "cancel", b.Cancel(), 0)
			}
		})
	}
}

// What Redis had granted is corrected when Redis is back.
func TestSettleWaitsForRedis(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, slow)
		down, up := reserve(t, lim, "down", 8), reserve(t, lim, "up", 3)
		r.FailWith("NOAUTH Authentication required.")
		trip(t, lim)
		want(t, "error", down.Settle(2), nil)
		want(t, "error", up.Settle(4), nil)
		want(t, "error", up.Settle(9), nil)
		r.Heal()
		for lim.Stats().Degraded {
			time.Sleep(10 * time.Millisecond)
			settle()
		}
		settle()
		want(t, "left", left(t, lim, "down"), 8)
		want(t, "left", left(t, lim, "up"), 1)
		want(t, "lost", lim.Stats().TokensLost, 0)
		want(t, "unaccounted", lim.Stats().TokensUnaccounted, 0)
	})
}

// A correction is sent at most once: when its answer is lost, it is counted.
func TestACorrectionIsSentOnce(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, slow)
		down, up := reserve(t, lim, "down", 8), reserve(t, lim, "up", 3)
		before := lim.Stats()
		for i, b := range []*hybrid.Reservation{down, up} {
			r.DropReplies(1)
			runs := r.Counts().Runs
			want(t, "error", b.Settle(5), nil)
			settle()
			time.Sleep(100 * time.Millisecond)
			r.Heal()
			want(t, "executed", r.Counts().Runs-runs, 1)
			_ = i
		}
		want(t, "left", left(t, lim, "down"), 5)
		want(t, "left", left(t, lim, "up"), 5)
		after := lim.Stats()
		want(t, "lost, as far as is known", after.TokensLost-before.TokensLost, 3)
		want(t, "unaccounted, as far as is known", after.TokensUnaccounted-before.TokensUnaccounted, 2)
	})
}

// Close takes corrections along that no message has yet.
func TestCloseSendsCorrections(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerHour(100_000), named)
		heat(t, lim)
		b := reserve(t, lim, "k", 100)
		if b.Result().Source != hybrid.SourceLease {
			b = reserve(t, lim, "k", 2)
		}
		other := start(t, r, hybrid.PerHour(100_000), named)
		want(t, "error", b.Settle(5000), nil)
		want(t, "error", lim.Close(), nil)
		settle()
		if got := left(t, other, "k"); got > 95_000 {
			t.Errorf("%d left, want the 5000 gone", got)
		}
		want(t, "error", b.Settle(5001), nil)
		want(t, "what nobody can be told is counted", lim.Stats().TokensUnaccounted, 1)
	})
}

// A key without a place in the table has nobody to keep a correction for it.
func TestSettleOfAnUntrackedKey(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, slow, hybrid.WithMaxKeys(1))
		r.Delay(time.Millisecond)
		go func() { _, _ = lim.Allow(t.Context(), "other") }() // a key under way is not forgotten
		settle()
		b := reserve(t, lim, "k", 8)
		want(t, "untracked", lim.Stats().Untracked, 1)
		r.FailWith("NOAUTH Authentication required.")
		trip(t, lim)
		want(t, "error", b.Settle(9), nil)
		want(t, "unaccounted", lim.Stats().TokensUnaccounted, 1)
		want(t, "error", b.Settle(5), nil)
		want(t, "lost", lim.Stats().TokensLost, 4)
	})
}

// A key that was forgotten is corrected all the same.
func TestSettleOfAForgottenKey(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, slow, hybrid.WithMaxKeys(1))
		b := reserve(t, lim, "k", 8)
		for range 3 { // one look for a place only clears the mark that the key was used
			allowN(t, lim, "other", 1)
		}
		want(t, "forgotten", lim.Stats().Evicted, 1)
		want(t, "error", b.Settle(3), nil)
		settle()
		want(t, "left", left(t, lim, "k"), 7)
	})
}
