package hybrid_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// served notes who was served when, counted from its making.
type served struct {
	mu    sync.Mutex
	begun time.Time
	list  []string
}

func newServed() *served { return &served{begun: time.Now()} }

func (s *served) note(who any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// What a lease earns by a rate is told in whole microseconds, rounded up.
	at := time.Since(s.begun).Truncate(10 * time.Microsecond)
	s.list = append(s.list, fmt.Sprintf("%v@%v", who, at))
}

func (s *served) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprint(s.list)
}

// queue starts a caller that waits for n tokens of "k" and notes it as who. It
// returns when the caller has done what it can.
func (s *served) queue(t *testing.T, all *sync.WaitGroup, lim *hybrid.Limiter, who, n int) {
	t.Helper()
	all.Go(func() {
		res, err := lim.WaitN(t.Context(), "k", n)
		if err != nil || !res.Allowed || res.RetryAfter != 0 {
			t.Errorf("waiter %d: %+v, %v", who, res, err)
		}
		s.note(who)
	})
	settle()
}

func TestWaitersAreServedInOrderAtTheExactTimes(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(10))
		allowN(t, lim, "k", 10)
		var all sync.WaitGroup
		s := newServed()
		for i := range 5 {
			s.queue(t, &all, lim, i, 1)
		}
		want(t, "waiting", lim.Stats().Waiting, 5)
		calls := r.Counts().Runs
		all.Wait()
		want(t, "served", s.String(), "[0@100ms 1@200ms 2@300ms 3@400ms 4@500ms]")
		if n := r.Counts().Runs - calls; n > 5 {
			t.Errorf("%d calls for 5 permits: somebody polls", n)
		}
		want(t, "waiting", lim.Stats().Waiting, 0)
		want(t, "decisions", decisions(lim.Stats()), 6)
	})
}

func TestManyWaitersOfOneKey(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(100))
		allowN(t, lim, "k", 100)
		var all sync.WaitGroup
		s := newServed()
		expected := []string{}
		for i := range 200 {
			s.queue(t, &all, lim, i, 1)
			expected = append(expected, fmt.Sprintf("%d@%v", i, time.Duration(i+1)*10*time.Millisecond))
		}
		all.Wait()
		want(t, "served", s.String(), fmt.Sprint(expected))
	})
}

func TestLargeWaitersKeepTheirPlaces(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(10))
		allowN(t, lim, "k", 10)
		var all sync.WaitGroup
		s := newServed()
		for i, n := range []int{10, 1, 5, 2} {
			s.queue(t, &all, lim, i, n)
		}
		all.Wait()
		want(t, "served", s.String(), "[0@1s 1@1.1s 2@1.6s 3@1.8s]")
	})
}

func TestWaitOfAFullBucketDoesNotWait(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(10))
		d := took(func() {
			if res, err := lim.Wait(t.Context(), "k"); err != nil || !res.Allowed || res.Remaining != 9 {
				t.Errorf("%+v, %v", res, err)
			}
		})
		want(t, "time", d, 0)
	})
}

func TestAllowDoesNotOvertakeAWaiter(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(10))
		allowN(t, lim, "k", 8)
		var all sync.WaitGroup
		s := newServed()
		s.queue(t, &all, lim, 0, 5) // for the remaining 2 and 3 to come
		for range 6 {
			res := allow(t, lim)
			if res.Allowed {
				t.Fatalf("2 tokens are left for the waiter: %+v", res)
			}
			// It is free when the waiter has got 5 and one more has come.
			want(t, "RetryAfter", res.RetryAfter, 400*time.Millisecond-time.Since(s.begun))
			time.Sleep(40 * time.Millisecond)
		}
		all.Wait()
		want(t, "served", s.String(), "[0@300ms]")
		want(t, "right after it", allow(t, lim).Allowed, false)
	})
}

// TestLeaseDoesNotServeAnOvertaker has a waiter for more than the lease holds:
// what the lease does hold is not for others.
func TestLeaseDoesNotServeAnOvertaker(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(1000), hybrid.WithRemoteTimeout(100*time.Millisecond))
		every(t, lim, 1000, time.Millisecond, func(hybrid.Result) {})
		want(t, "a lease is held", allow(t, lim).Source, hybrid.SourceLease)
		var all sync.WaitGroup
		s := newServed()
		r.Delay(20 * time.Millisecond)
		s.queue(t, &all, lim, 0, 500) // asks Redis, which takes its time
		all.Go(func() {
			if res := allow(t, lim); !res.Allowed {
				t.Errorf("after the waiter: %+v", res)
			}
			s.note("allow")
		})
		settle()
		want(t, "served before the answer", s.String(), "[]")
		all.Wait()
		slices.Sort(s.list) // the two goroutines run on at once
		want(t, "served", s.String(), "[0@20ms allow@20ms]")
		// The lease is open again.
		want(t, "afterwards", allow(t, lim).Source, hybrid.SourceLease)
	})
}

func TestCancelledWaitGivesItsPlaceBack(t *testing.T) {
	for _, who := range []int{0, 1, 2} { // the head, the middle, the last
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			lim := start(t, r, hybrid.PerSecond(10))
			allowN(t, lim, "k", 10)
			var all sync.WaitGroup
			s := newServed()
			ctx, cancel := context.WithCancel(t.Context())
			for i := range 3 {
				if i != who {
					s.queue(t, &all, lim, i, 3)
					continue
				}
				all.Go(func() {
					if _, err := lim.WaitN(ctx, "k", 3); !errors.Is(err, context.Canceled) {
						t.Errorf("the one who left: %v", err)
					}
					s.note("left")
				})
				settle()
			}
			time.Sleep(50 * time.Millisecond)
			cancel()
			all.Wait()
			want(t, "served", s.String(), []string{
				"[left@50ms 1@300ms 2@600ms]", "[left@50ms 0@300ms 2@600ms]", "[left@50ms 0@300ms 1@600ms]",
			}[who])
			want(t, "tokens lost", lim.Stats().TokensLost, 0)
			want(t, "waiting", lim.Stats().Waiting, 0)
		})
	}
}

// TestNextNeedsLessThanTheOneWhoLeft: with the head goes the time it waited for.
func TestNextNeedsLessThanTheOneWhoLeft(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(10))
		allowN(t, lim, "k", 10)
		var all sync.WaitGroup
		s := newServed()
		ctx, cancel := context.WithCancel(t.Context())
		all.Go(func() { _, _ = lim.WaitN(ctx, "k", 10) })
		settle()
		s.queue(t, &all, lim, 1, 2)
		time.Sleep(50 * time.Millisecond)
		cancel()
		all.Wait()
		want(t, "served", s.String(), "[1@200ms]")
	})
}

func TestWaitInVainEndsAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(10))
		allowN(t, lim, "k", 10)
		var all sync.WaitGroup
		s := newServed()
		s.queue(t, &all, lim, 0, 2)
		try := func(n int, timeout time.Duration) (time.Duration, error) {
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			var err error
			d := took(func() { _, err = lim.WaitN(ctx, "k", n) })
			return d, err
		}
		d, err := try(3, 500*time.Millisecond-1) // it would be its turn after 500 ms
		want(t, "time", d, 0)
		for _, target := range []error{hybrid.ErrWouldExceedDeadline, context.DeadlineExceeded} {
			if !errors.Is(err, target) {
				t.Errorf("%v is not %v", err, target)
			}
		}
		if errors.Is(err, context.Canceled) {
			t.Errorf("%v is context.Canceled", err)
		}
		d, err = try(3, 501*time.Millisecond)
		if d != 500*time.Millisecond || err != nil {
			t.Errorf("with time enough: %v after %v", err, d)
		}
		all.Wait()
		want(t, "served", s.String(), "[0@200ms]")
		want(t, "tokens lost", lim.Stats().TokensLost, 0)
	})
}

func TestWaitEndsWithClose(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerHour(2), hybrid.WithMaxKeys(1))
		var all sync.WaitGroup
		// Two of these keys find no room in the table.
		for _, key := range []string{"a", "b", "c"} {
			allowN(t, lim, key, 2)
			for range 3 {
				all.Go(func() {
					if _, err := lim.Wait(t.Context(), key); !errors.Is(err, hybrid.ErrClosed) {
						t.Errorf("Wait of %s: %v", key, err)
					}
				})
			}
			settle()
		}
		time.Sleep(time.Second)
		want(t, "waiting", lim.Stats().Waiting, 9)
		d := took(func() {
			if err := lim.Close(); err != nil {
				t.Error(err)
			}
			all.Wait()
		})
		want(t, "time until all have gone", d, 0)
		want(t, "waiting", lim.Stats().Waiting, 0)
		if _, err := lim.Wait(t.Context(), "a"); !errors.Is(err, hybrid.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

func TestWaitWithALocalShare(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(10), hybrid.WithLocalShare(0.5))
		allowN(t, lim, "k", 5)
		var all sync.WaitGroup
		s := newServed()
		for i, n := range []int{1, 2, 1} {
			s.queue(t, &all, lim, i, n)
		}
		res := allow(t, lim)
		if res.Allowed || res.Source != hybrid.SourcePrefilter || res.RetryAfter != time.Second {
			t.Errorf("behind the waiters: %+v", res)
		}
		all.Wait()
		want(t, "served", s.String(), "[0@200ms 1@600ms 2@800ms]")

		// With the root empty it is the root that counts.
		other := start(t, r, hybrid.PerSecond(10))
		drain(t, other, "k")
		time.Sleep(time.Second)
		want(t, "of the root", drain(t, other, "k"), 10)
		s = newServed()
		for i := range 3 {
			s.queue(t, &all, lim, i, 1)
		}
		all.Wait()
		want(t, "served", s.String(), "[0@100ms 1@200ms 2@300ms]")
	})
}

// TestLargeWaiterIsNotBlockedByItsOwnLease: the root never has a whole burst while
// this instance holds part of it, so the lease is given back for whoever needs it.
func TestLargeWaiterIsNotBlockedByItsOwnLease(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(10).WithBurst(1000))
		every(t, lim, 300, time.Millisecond, func(hybrid.Result) {})
		want(t, "a lease was granted", lim.Stats().TokensGranted > 0, true)
		ctx, cancel := context.WithTimeout(t.Context(), 31*time.Second) // for the 300 spent
		defer cancel()
		if _, err := lim.WaitN(ctx, "k", 1000); err != nil {
			t.Fatal(err)
		}
	})
}
