package hybrid_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// heat has a limiter ask once per millisecond until it holds a lease, and longer.
func heat(t *testing.T, lim *hybrid.Limiter) {
	t.Helper()
	last := hybrid.Result{}
	every(t, lim, 600, time.Millisecond, func(res hybrid.Result) { last = res })
	want(t, "source when it is hot", last.Source, hybrid.SourceLease)
}

// held is how many tokens of "k" all leases hold, as the root counts them.
func held(t testing.TB, r *redistest.Mini) int64 {
	t.Helper()
	return field(t, r, "o") / 1_000_000
}

func TestLeaseHonoursALowerLimitAtTheNextRequest(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(10_000), named)
		heat(t, lim)
		want(t, "much is held", held(t, r) > 50, true)
		if err := lim.SetLimit(hybrid.PerSecond(10)); err != nil {
			t.Fatal(err)
		}
		res := allow(t, lim) // the last one on the old lease, which is renewed
		want(t, "the next one", res.Allowed, true)
		settle()
		want(t, "tokens left at the root", field(t, r, "t"), 0)
		want(t, "held then", held(t, r) <= 10, true)
		n := drain(t, lim, "k")
		want(t, "what can be had then", n, 10)
		want(t, "the limit of a refusal", allow(t, lim).Limit, hybrid.PerSecond(10))
		time.Sleep(time.Second)
		want(t, "a second later", drain(t, lim, "k"), 10)
	})
}

func TestLeaseHonoursAHigherLimitAtTheNextRequest(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(100), named)
		every(t, lim, 2000, time.Millisecond, func(hybrid.Result) {}) // ten times the limit
		drain(t, lim, "k")
		setLimit(t, 1, hybrid.PerSecond(10_000), lim)
		allow(t, lim)
		settle()
		got := 0
		every(t, lim, 1000, time.Millisecond, func(res hybrid.Result) {
			if res.Allowed {
				got++
				want(t, "limit", res.Limit, hybrid.PerSecond(10_000))
			}
		})
		want(t, "nearly all are admitted", got >= 990, true)
	})
}

// Leases of others end or are renewed within their time, under the new limit.
func TestLeasesOfOthersHonourTheLimitWithinOneLease(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		high, low := hybrid.PerSecond(10_000), hybrid.PerSecond(20)
		lims := []*hybrid.Limiter{start(t, r, high, named), start(t, r, high, named), start(t, r, high, named)}
		for range 600 {
			for _, lim := range lims {
				allow(t, lim)
			}
			time.Sleep(time.Millisecond)
			settle()
		}
		want(t, "much is held", held(t, r) > 200, true)
		setLimit(t, 1, low, lims[0]) // nobody tells the other two, and the third is dead
		changed := time.Now()
		admitted := 0
		for time.Since(changed) < time.Second {
			for _, lim := range lims[:2] {
				if allow(t, lim).Allowed {
					admitted++
				}
			}
			time.Sleep(time.Millisecond)
			settle()
		}
		if admitted > 10_000 {
			t.Errorf("%d admitted within a lease, want what the larger limit allows at most", admitted)
		}
		allow(t, lims[1])
		settle()
		if tokens, out := field(t, r, "t"), field(t, r, "o"); tokens+out > 20_000_000 {
			t.Errorf("%d micro-tokens and %d out one lease later, want at most 20 together", tokens, out)
		}
		after := new(record)
		for begun := time.Now(); time.Since(begun) < 3*time.Second; time.Sleep(time.Millisecond) {
			for _, lim := range lims[:2] {
				if res := allow(t, lim); res.Allowed {
					after.add(1)
					want(t, "limit", res.Limit, low)
				}
			}
		}
		after.inBound(t, 20, 20)
		want(t, "the limit is used", after.total() >= 55, true)
	})
}

// A message that was under way under the old limit does not bring it back, and
// there is nobody who disagrees.
func TestAnswerFromBeforeSetLimitDoesNotBringTheOldOneBack(t *testing.T) {
	for _, to := range []hybrid.Limit{hybrid.PerSecond(5), hybrid.PerSecond(20), hybrid.PerSecond(10).WithBurst(30)} {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			events := new(journal)
			lim := start(t, r, hybrid.PerSecond(10), named, hybrid.WithEvents(events.add))
			allowN(t, lim, "k", 5)
			r.Delay(10 * time.Millisecond)
			var all sync.WaitGroup
			for range 2 { // one in the message, one behind it
				all.Go(func() { allowN(t, lim, "k", 1) })
				time.Sleep(time.Millisecond)
			}
			setLimit(t, 1, to, lim)
			all.Wait()
			r.Heal()
			want(t, "limit of the next decision", allow(t, lim).Limit, to)
			want(t, "events", fmt.Sprint(events.all()), "[]")
		})
	}
}

func TestLeaseFromBeforeSetLimitIsRenewedAtTheNextRequest(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(10_000), named)
		heat(t, lim)
		r.Delay(10 * time.Millisecond)
		before := r.Counts().Runs
		for r.Counts().Runs == before { // until a renewal is under way
			allow(t, lim)
			time.Sleep(time.Millisecond)
			settle()
		}
		setLimit(t, 1, hybrid.PerSecond(10), lim)
		time.Sleep(20 * time.Millisecond)
		r.Heal()
		allow(t, lim)
		settle()
		want(t, "held under the new limit", held(t, r) <= 10, true)
		want(t, "what can be had then", drain(t, lim, "k"), 10)
	})
}

func TestWaitersGoByTheNewLimit(t *testing.T) {
	for _, c := range []struct {
		to     hybrid.Limit
		served string
		errors string
	}{
		{hybrid.PerSecond(5).WithBurst(20), "[1@200ms 15@3.2s 3@3.8s]", "[]"},
		{hybrid.PerSecond(12).WithBurst(20), "[1@83.33ms 15@1.33333s 3@1.58333s]", "[]"},
		{hybrid.PerSecond(5).WithBurst(10), "[1@200ms 3@800ms]", "[15@0s]"},
		{hybrid.PerSecond(5).WithBurst(2), "[1@200ms]", "[15@0s 3@0s]"},
		{hybrid.PerSecond(10).WithBurst(20), "[1@100ms 15@1.6s 3@1.9s]", "[]"},
		{hybrid.Unlimited, "[1@0s 15@0s 3@0s]", "[]"},
		{hybrid.Blocked, "[]", "[1@0s 15@0s 3@0s]"},
	} {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			lim := start(t, r, hybrid.PerSecond(10).WithBurst(20), named)
			allowN(t, lim, "k", 20)
			var all sync.WaitGroup
			served, failed := newServed(), newServed()
			for _, n := range []int{1, 15, 3} {
				all.Go(func() {
					switch _, err := lim.WaitN(t.Context(), "k", n); {
					case err == nil:
						served.note(n)
					case errors.Is(err, hybrid.ErrExceedsBurst):
						failed.note(n)
					default:
						t.Errorf("WaitN(%d): %v", n, err)
					}
				})
				settle()
			}
			setLimit(t, 1, c.to, lim)
			all.Wait()
			want(t, fmt.Sprintf("served under %v", c.to), sorted(served), c.served)
			want(t, fmt.Sprintf("too large for %v", c.to), sorted(failed), c.errors)
			want(t, "waiting", lim.Stats().Waiting, 0)
		})
	}
}

// sorted is the record of those who were served; who is served at the same time
// may note it in any order.
func sorted(s *served) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.list {
		for k := i; k > 0 && order(s.list[k]) < order(s.list[k-1]); k-- {
			s.list[k], s.list[k-1] = s.list[k-1], s.list[k]
		}
	}
	return fmt.Sprint(s.list)
}

// order is when somebody was served, and among those at the same time where they
// stood in the queue.
func order(note string) time.Duration {
	var n int
	var at string
	if _, err := fmt.Sscanf(note, "%d@%s", &n, &at); err != nil {
		return 0
	}
	d, err := time.ParseDuration(at)
	if err != nil {
		return 0
	}
	return d*4 + time.Duration(map[int]int{1: 0, 15: 1, 3: 2}[n])
}

// Those who are in a message are told as soon as its answer is there, whether it
// brings anything or not.
func TestWaitersInAMessageGoByTheNewLimitWhenItLands(t *testing.T) {
	for _, fails := range []bool{false, true} {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			lim := start(t, r, hybrid.PerSecond(10).WithBurst(20), named)
			warm(t, lim)
			allowN(t, lim, "k", 20)
			time.Sleep(50 * time.Millisecond)
			r.Delay(10 * time.Millisecond)
			var all sync.WaitGroup
			begun, answered := time.Now(), 70*time.Millisecond
			if fails {
				answered = 110 * time.Millisecond // the time-out
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			for _, n := range []int{1, 15} { // behind one who can be served there is one who never will
				all.Go(func() {
					_, err := lim.WaitN(ctx, "k", n)
					switch {
					case n == 1 && err != nil:
						t.Errorf("one token: %v", err)
					case n == 15 && !errors.Is(err, hybrid.ErrExceedsBurst):
						t.Errorf("15 tokens: %v", err)
					case n == 15 && time.Since(begun) != answered:
						t.Errorf("15 tokens: told after %v, want %v", time.Since(begun), answered)
					}
				})
				settle()
			}
			// Both wait for the first token, half of which was missing when Redis was asked
			// and 10 ms passed until that was known. Then they are in a message again.
			time.Sleep(60*time.Millisecond - time.Millisecond)
			if fails {
				r.Freeze()
			}
			time.Sleep(2 * time.Millisecond)
			setLimit(t, 1, hybrid.PerSecond(10), lim)
			time.Sleep(100 * time.Millisecond)
			if fails {
				r.Thaw()
			}
			all.Wait()
		})
	}
}
