package hybrid_test

import (
	"errors"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// cut makes Redis fail and waits until the limiter knows.
func cut(t *testing.T, r *redistest.Mini, lim *hybrid.Limiter) {
	t.Helper()
	r.Kill()
	trip(t, lim)
}

func TestSetLimitInAnOutageReshapesTheShare(t *testing.T) {
	for _, c := range []struct {
		to    hybrid.Limit // of 100/s, divided by 4
		left  int          // of 15 that were left
		gains time.Duration
	}{
		{hybrid.PerSecond(40), 10, 100 * time.Millisecond},
		{hybrid.PerSecond(80), 15, 50 * time.Millisecond},
		{hybrid.PerSecond(400), 15, 10 * time.Millisecond},
		{hybrid.PerSecond(40).WithBurst(4), 1, 100 * time.Millisecond},
		{hybrid.PerSecond(8).WithBurst(400), 15, 500 * time.Millisecond},
	} {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			lim := start(t, r, hybrid.PerSecond(100), named, hybrid.WithExpectedInstances(4))
			cut(t, r, lim)
			for range 10 {
				want(t, "at first", allow(t, lim).Allowed, true)
			}
			setLimit(t, 1, c.to, lim)
			want(t, "limit of a decision", allowN(t, lim, "k", 0).Limit, c.to)
			want(t, "left of 15", drain(t, lim, "k"), c.left)
			res := allow(t, lim)
			want(t, "source", res.Source, hybrid.SourceDegraded)
			want(t, "limit of a refusal", res.Limit, c.to)
			want(t, "the next one", res.RetryAfter, c.gains)
			time.Sleep(c.gains)
			want(t, "then", allow(t, lim).Allowed, true)
			want(t, "and no more", allow(t, lim).Allowed, false)
			want(t, "of a new key", drain(t, lim, "new"), max(1, c.to.Burst()/4))
		})
	}
}

func TestSetLimitInAnOutageMovesThoseWhoWait(t *testing.T) {
	for _, c := range []struct {
		to   hybrid.Limit
		wait time.Duration // for the token of the first in the queue
	}{
		{hybrid.PerSecond(10).WithBurst(100), 400 * time.Millisecond},
		{hybrid.PerSecond(400), 10 * time.Millisecond},
		{hybrid.Unlimited, 0},
	} {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			lim := start(t, r, hybrid.PerSecond(100), named, hybrid.WithExpectedInstances(4))
			cut(t, r, lim)
			want(t, "the share", drain(t, lim, "k"), 25)
			done := make(chan time.Duration, 1)
			go func() {
				begun := time.Now()
				if _, err := lim.Wait(t.Context(), "k"); err != nil {
					t.Errorf("Wait: %v", err)
				}
				done <- time.Since(begun)
			}()
			settle()
			setLimit(t, 1, c.to, lim)
			want(t, "waited", <-done, c.wait)
		})
	}
}

func TestSetLimitInAnOutageEndsTheWaitForMoreThanTheNewBurst(t *testing.T) {
	for _, to := range []hybrid.Limit{hybrid.PerSecond(100).WithBurst(19), hybrid.Blocked} {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			lim := start(t, r, hybrid.PerSecond(100), named, hybrid.WithExpectedInstances(4))
			cut(t, r, lim)
			drain(t, lim, "k")
			done := make(chan error, 1)
			go func() { done <- second(lim.WaitN(t.Context(), "k", 20)) }()
			settle()
			begun := time.Now()
			setLimit(t, 1, to, lim)
			if err := <-done; !errors.Is(err, hybrid.ErrExceedsBurst) {
				t.Errorf("WaitN: %v", err)
			}
			want(t, "told after", time.Since(begun), 0)
		})
	}
}

func TestSetLimitInAnOutageAppliesAfterIt(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(10), named, hybrid.WithExpectedInstances(4))
		allowN(t, lim, "k", 2)
		cut(t, r, lim)
		setLimit(t, 1, hybrid.PerHour(5), lim)
		r.RestartWithData()
		for lim.Stats().Degraded {
			time.Sleep(time.Millisecond)
			settle()
		}
		res := allow(t, lim)
		want(t, "source", res.Source, hybrid.SourceRedis)
		want(t, "limit", res.Limit, hybrid.PerHour(5))
		want(t, "the tokens are cut to the burst", res.Remaining, 4)
		want(t, "the stored limit", r.Miniredis().HGet("rl:{n:k}", "l"), "1 1 720 5000000 1")
	})
}

func TestBlockedInAnOutageAndBack(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(100), named, hybrid.WithExpectedInstances(4))
		cut(t, r, lim)
		want(t, "the share", drain(t, lim, "k"), 25)
		setLimit(t, 1, hybrid.Blocked, lim)
		want(t, "blocked", allow(t, lim), ruled[hybrid.Blocked])
		want(t, "blocked, a new key", allowN(t, lim, "new", 1), ruled[hybrid.Blocked])
		time.Sleep(80 * time.Millisecond)
		setLimit(t, 1, hybrid.PerSecond(100), lim)
		want(t, "two tokens of 25/s and no burst", drain(t, lim, "k"), 2)
	})
}

func TestSetLimitReshapesTheLocalShare(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(10).WithBurst(100), named, hybrid.WithLocalShare(0.2))
		for range 5 {
			allow(t, lim)
		}
		settle()
		setLimit(t, 1, hybrid.PerSecond(5).WithBurst(50), lim) // 1/s up to 10, of 15
		want(t, "down", drain(t, lim, "k"), 10)
		res := allow(t, lim)
		want(t, "source", res.Source, hybrid.SourcePrefilter)
		want(t, "the next one", res.RetryAfter, time.Second)
		want(t, "limit", res.Limit, hybrid.PerSecond(5).WithBurst(50))
		if _, err := lim.AllowN(t.Context(), "k", 11); !errors.Is(err, hybrid.ErrExceedsBurst) {
			t.Errorf("more than the share of the new burst: %v", err)
		}
		setLimit(t, 2, hybrid.PerSecond(50).WithBurst(200), lim) // 10/s up to 40
		want(t, "up", allow(t, lim).RetryAfter, 100*time.Millisecond)
		time.Sleep(300 * time.Millisecond)
		want(t, "then", drain(t, lim, "k"), 3)
		time.Sleep(10 * time.Second)
		want(t, "the new burst", drain(t, lim, "k"), 40)
	})
}
