package hybrid_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// reserve books n tokens of a key.
func reserve(t testing.TB, lim *hybrid.Limiter, key string, n int) *hybrid.Reservation {
	t.Helper()
	r, err := lim.Reserve(t.Context(), hybrid.Request{Key: key, N: n})
	if err != nil {
		t.Fatalf("Reserve(%q, %d): %v", key, n, err)
	}
	return r
}

// booked fails unless a reservation is refused, and gives its RetryAfter.
func booked(t testing.TB, lim *hybrid.Limiter, key string, n int) time.Duration {
	t.Helper()
	r, err := lim.Reserve(t.Context(), hybrid.Request{Key: key, N: n})
	var limited *hybrid.LimitedError
	if !errors.As(err, &limited) || limited.Key != key {
		t.Fatalf("Reserve(%q, %d): %+v, %v; want it refused", key, n, r, err)
	}
	return limited.Result.RetryAfter
}

func TestReserveBooksOneBurstAhead(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		one := start(t, r, hybrid.PerSecond(10), named)
		two := start(t, r, hybrid.PerSecond(10), named)
		for i, delay := range []time.Duration{0, 0, 500 * time.Millisecond, time.Second} {
			lim := one
			if i == 2 {
				lim = two
			}
			want(t, "delay", reserve(t, lim, "k", 5).Delay(), delay)
		}
		want(t, "retry after", booked(t, one, "k", 5), 500*time.Millisecond)
		want(t, "retry after at another", booked(t, two, "k", 1), 100*time.Millisecond)
		res := allow(t, one)
		want(t, "nobody else is admitted", res.Allowed, false)
		want(t, "and for how long", res.RetryAfter, 1100*time.Millisecond)
		time.Sleep(500 * time.Millisecond)
		want(t, "delay of the next", reserve(t, one, "k", 5).Delay(), time.Second)
		time.Sleep(1099 * time.Millisecond)
		want(t, "the debt is not paid", allowN(t, two, "k", 1).Allowed, false)
		time.Sleep(time.Millisecond)
		want(t, "the debt is paid", allowN(t, two, "k", 1).Allowed, true)
	})
}

func TestReserveNowNeverBooksAhead(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, slow)
		now := func(n int) (*hybrid.Reservation, error) {
			return lim.ReserveNow(t.Context(), hybrid.Request{Key: "k", N: n})
		}
		b, err := now(8)
		want(t, "error", err, nil)
		want(t, "delay", b.Delay(), 0)
		_, err = now(3)
		var limited *hybrid.LimitedError
		want(t, "refused", errors.As(err, &limited), true)
		want(t, "retry after", limited.Result.RetryAfter, 6*time.Minute)
		want(t, "error", b.Settle(6), nil)
		settle()
		_, err = now(3)
		want(t, "error", err, nil)
		want(t, "left", left(t, lim, "k"), 1)
	})
}

func TestReserveRefusesWhatCanNeverPass(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerHour(10))
		for _, c := range []struct {
			r   hybrid.Request
			err error
		}{
			{hybrid.Request{N: 1}, hybrid.ErrInvalidKey},
			{hybrid.Request{Key: "k"}, hybrid.ErrInvalidN},
			{hybrid.Request{Key: "k", N: -1}, hybrid.ErrInvalidN},
			{hybrid.Request{Key: "k", N: 11}, hybrid.ErrExceedsBurst},
			{hybrid.Request{Key: "k", N: 9, Priority: hybrid.PriorityLow}, hybrid.ErrExceedsBurst},
		} {
			if _, err := lim.Reserve(t.Context(), c.r); !errors.Is(err, c.err) {
				t.Errorf("%+v: %v, want %v", c.r, err, c.err)
			}
		}
		want(t, "calls", r.Counts().Runs, 0)
		_ = lim.Close()
		_, err := lim.Reserve(t.Context(), hybrid.Request{Key: "k", N: 1})
		want(t, "error", err, hybrid.ErrClosed)
	})
}

func TestCancelGivesBackWhatIsNotDue(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(10))
		now := reserve(t, lim, "k", 10)
		later := reserve(t, lim, "k", 5)
		want(t, "what is due is used", now.Cancel(), 0)
		time.Sleep(200 * time.Millisecond)
		want(t, "what is not is given back", later.Cancel(), 5)
		settle()
		want(t, "left", left(t, lim, "k"), 2) // of -5 + 2 + 5
		want(t, "once", later.Cancel(), 0)
		want(t, "and it is settled", later.Settle(3), nil)
		want(t, "left", left(t, lim, "k"), 2)
		late := reserve(t, lim, "k", 10)
		want(t, "delay", late.Delay(), 800*time.Millisecond)
		time.Sleep(800 * time.Millisecond)
		want(t, "due", late.Delay(), 0)
		want(t, "too late", late.Cancel(), 0)
	})
}

func TestSettleCorrectsTheCost(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		events := new(journal)
		lim := start(t, r, slow, hybrid.WithEvents(events.add))
		cost := func(b *hybrid.Reservation, actual, wanted int) {
			t.Helper()
			want(t, "error", b.Settle(actual), nil)
			settle()
			want(t, "left", left(t, lim, "k"), wanted)
		}
		b := reserve(t, lim, "k", 8)
		cost(b, 8, 2)
		cost(b, 3, 7)
		cost(b, 5, 5)
		want(t, "a negative cost", b.Settle(-1), hybrid.ErrInvalidN)
		cost(b, 0, 10)
		cost(b, 12, 0)
		res := allow(t, lim)
		want(t, "the debt is paid first", res.RetryAfter, 3*6*time.Minute)
		cost(b, 25, 0)
		res = allow(t, lim)
		want(t, "a debt of one burst", res.RetryAfter, 11*6*time.Minute)
		want(t, "unaccounted", lim.Stats().TokensUnaccounted, 5)
		found := 0
		for _, e := range events.all() {
			if u, ok := e.(hybrid.Unaccounted); ok {
				found++
				want(t, "told", u.Tokens, 5)
			}
		}
		want(t, "events", found, 1)
		cost(b, 0, 10) // more than was charged comes back: it is full, and no fuller
		want(t, "the burst", drain(t, lim, "k"), 10)
	})
}

// What was beyond the debt was never charged, and does not come back.
func TestOnlyWhatWasChargedComesBack(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, slow)
		allowN(t, lim, "k", 3)
		b := reserve(t, lim, "k", 4)
		want(t, "error", b.Settle(20), nil)
		settle()
		want(t, "unaccounted", lim.Stats().TokensUnaccounted, 3)
		want(t, "error", b.Settle(0), nil)
		settle()
		want(t, "left", left(t, lim, "k"), 7)
	})
}

// Each tier is charged, down to a debt of its own burst.
func TestSettleWithTiers(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(10), hybrid.WithTiers(hybrid.PerHour(100)))
		b := reserve(t, lim, "k", 10)
		booked(t, lim, "k", 1) // there is no debt of a tier
		want(t, "error", b.Settle(70), nil)
		settle()
		want(t, "beyond the debt of the first", lim.Stats().TokensUnaccounted, 50)
		time.Sleep(3 * time.Second)
		want(t, "left of the hour", drain(t, lim, "k"), 10)
		time.Sleep(3 * time.Second)
		want(t, "left of the hour", drain(t, lim, "k"), 10)
		want(t, "error", b.Settle(60), nil)
		time.Sleep(3 * time.Second)
		want(t, "left of the hour", drain(t, lim, "k"), 10)
	})
}

// A refund fills the bucket up, but no further, and lets no key live longer.
func TestARefundNeitherMintsNorProlongs(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, slow)
		b := reserve(t, lim, "k", 4)
		time.Sleep(20 * time.Minute) // 3.3 are back
		ttl := r.Miniredis().TTL(r.Miniredis().Keys()[0])
		want(t, "error", b.Settle(0), nil)
		settle()
		want(t, "left", left(t, lim, "k"), 10)
		if after := r.Miniredis().TTL(r.Miniredis().Keys()[0]); after > ttl {
			t.Errorf("the key lives for %v, it was %v", after, ttl)
		}
		want(t, "the burst", drain(t, lim, "k"), 10)
	})
}

// Permits from a lease are due at once, and corrections travel with the messages of
// the lease.
func TestReserveFromALease(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerHour(100_000), named)
		heat(t, lim)
		before, calls := left(t, lim, "k"), r.Counts().Runs
		var all []*hybrid.Reservation
		for range 5 {
			b := reserve(t, lim, "k", 3)
			want(t, "source", b.Result().Source, hybrid.SourceLease)
			want(t, "delay", b.Delay(), 0)
			want(t, "nothing to cancel", b.Cancel(), 0)
			all = append(all, b)
		}
		for _, b := range all {
			want(t, "error", b.Settle(1), nil)
		}
		if n := r.Counts().Runs - calls; n > 2 {
			t.Errorf("%d calls for five reservations", n)
		}
		time.Sleep(30 * time.Second) // the lease is returned
		gained := 100_000 / 3600 * 30
		if got := left(t, lim, "k"); got < before-5 || got > before-5+gained+30 {
			t.Errorf("%d left of %d, want five less and what came in", got, before)
		}
	})
}

func TestReserveWithTheOtherAlgorithms(t *testing.T) {
	for _, a := range []hybrid.Algorithm{hybrid.LeakyBucket, hybrid.FixedWindow, hybrid.SlidingLog, hybrid.RollingWindow} {
		t.Run(a.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *redistest.Mini) {
				lim := start(t, r, slow, named, hybrid.WithAlgorithm(a))
				b := reserve(t, lim, "k", 6)
				want(t, "due", b.Delay(), 0)
				booked(t, lim, "k", 5)
				want(t, "error", b.Settle(9), nil)
				settle()
				want(t, "left", left(t, lim, "k"), 1)
				want(t, "error", b.Settle(4), nil)
				settle()
				want(t, "left", left(t, lim, "k"), map[bool]int{false: 6, true: 1}[a == hybrid.SlidingLog])
				want(t, "error", b.Settle(40), nil)
				settle()
				want(t, "all is gone", drain(t, lim, "k"), 0)
				// Of the 36 more, what was left and one limit of debt are charged.
				want(t, "unaccounted", lim.Stats().TokensUnaccounted, map[bool]uint64{false: 20, true: 25}[a == hybrid.SlidingLog])
			})
		})
	}
}

// What is given back counts in the window that it was taken in, and is gone with it.
func TestARefundStaysInItsWindow(t *testing.T) {
	for _, a := range []hybrid.Algorithm{hybrid.FixedWindow, hybrid.RollingWindow} {
		t.Run(a.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *redistest.Mini) {
				lim := start(t, r, hybrid.PerMinute(10), hybrid.WithAlgorithm(a), named)
				other := start(t, r, hybrid.PerMinute(10), hybrid.WithAlgorithm(a), named)
				r.Delay(time.Millisecond)
				first, second := reserve(t, lim, "k", 6), reserve(t, lim, "k", 2)
				time.Sleep(20 * time.Second)
				want(t, "error", second.Settle(1), nil) // in its own counter, which is not the last
				settle()
				time.Sleep(10 * time.Millisecond)
				want(t, "left", left(t, lim, "k"), 3)
				want(t, "later", drain(t, other, "k"), 3)
				want(t, "error", second.Settle(0), nil)
				settle()
				time.Sleep(10 * time.Millisecond)
				want(t, "left", left(t, lim, "k"), 1)
				time.Sleep(50 * time.Second) // the first window is over
				want(t, "in the next", drain(t, other, "k"), map[hybrid.Algorithm]int{hybrid.FixedWindow: 10, hybrid.RollingWindow: 7}[a])
				want(t, "error", first.Settle(0), nil)
				settle()
				time.Sleep(10 * time.Millisecond)
				want(t, "the next has nothing of it", drain(t, lim, "k"), 0)
				want(t, "lost", lim.Stats().TokensLost, 6)
			})
		})
	}
}

func TestReservationWait(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(10))
		want(t, "at once", took(func() { want(t, "error", reserve(t, lim, "k", 10).Wait(t.Context()), nil) }), 0)
		b := reserve(t, lim, "k", 5)
		want(t, "until it is due", took(func() { want(t, "error", b.Wait(t.Context()), nil) }), 500*time.Millisecond)
		b = reserve(t, lim, "k", 10)
		ctx, cancel := context.WithTimeout(t.Context(), 900*time.Millisecond)
		defer cancel()
		want(t, "at once", took(func() {
			want(t, "error", errors.Is(b.Wait(ctx), hybrid.ErrWouldExceedDeadline), true)
		}), 0)
		settle()
		want(t, "it was cancelled", reserve(t, lim, "k", 10).Delay(), time.Second)
		time.Sleep(500 * time.Millisecond)
		b = reserve(t, lim, "k", 1)
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(300*time.Millisecond, cancel)
		want(t, "until the context ends", took(func() { want(t, "error", b.Wait(ctx), context.Canceled) }), 300*time.Millisecond)
		settle()
		want(t, "it was cancelled", reserve(t, lim, "k", 1).Delay(), 300*time.Millisecond)
	})
}

func TestReserveOfLowPriorityLeavesTheReserve(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(10))
		var last time.Duration
		n := 0
		for ; ; n++ {
			b, err := lim.Reserve(t.Context(), hybrid.Request{Key: "k", N: 1, Priority: hybrid.PriorityLow})
			if err != nil {
				break
			}
			last = b.Delay()
		}
		want(t, "booked", n, 18)
		want(t, "the last is due", last, 800*time.Millisecond)
		want(t, "others still book", reserve(t, lim, "k", 2).Delay(), time.Second)
	})
}

func TestReserveWithinALocalShare(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(20), hybrid.WithLocalShare(0.5))
		want(t, "delay", reserve(t, lim, "k", 10).Delay(), 0)
		want(t, "delay by the share", reserve(t, lim, "k", 5).Delay(), 500*time.Millisecond)
		want(t, "delay by the share", reserve(t, lim, "k", 5).Delay(), time.Second)
		want(t, "retry after", booked(t, lim, "k", 1), 100*time.Millisecond)
	})
}

// The local share is given back, and charged, with the rest.
func TestSettleWithinALocalShare(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerHour(20), hybrid.WithLocalShare(0.5))
		b := reserve(t, lim, "k", 10)
		want(t, "the share is used up", drain(t, lim, "k"), 0)
		want(t, "error", b.Settle(4), nil)
		settle()
		want(t, "given back", drain(t, lim, "k"), 6)
		want(t, "error", b.Settle(9), nil)
		settle()
		res := allow(t, lim)
		want(t, "source", res.Source, hybrid.SourcePrefilter)
		want(t, "a debt of the share", res.RetryAfter.Round(time.Minute), 6*6*time.Minute)
	})
}

func TestReserveOfFixedLimits(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.Unlimited, named)
		b := reserve(t, lim, "k", 1000)
		want(t, "delay", b.Delay(), 0)
		want(t, "error", b.Settle(5), nil)
		want(t, "cancel", b.Cancel(), 0)
		want(t, "error", lim.SetLimit(hybrid.Blocked), nil)
		booked(t, lim, "k", 1)
		want(t, "calls", r.Counts().Runs, 0)
		shadow := start(t, r, hybrid.PerHour(1), hybrid.WithName("shadow"), hybrid.WithShadow())
		for i := range 4 {
			b := reserve(t, shadow, "k", 1)
			want(t, "in the shadow", b.Result().Shadow, i > 1)
			want(t, "error", b.Settle(1), nil)
		}
	})
}
