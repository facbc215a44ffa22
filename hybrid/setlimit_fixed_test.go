package hybrid_test

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// ruled are the decisions under the two limits that are no bucket.
var ruled = map[hybrid.Limit]hybrid.Result{
	hybrid.Unlimited: {Allowed: true, Source: hybrid.SourceRule, Limit: hybrid.Unlimited, Remaining: math.MaxInt},
	hybrid.Blocked:   {Source: hybrid.SourceRule, Limit: hybrid.Blocked, RetryAfter: time.Minute, ResetAfter: time.Minute},
}

// decidesByRule fails the test unless all is decided by that rule, and nobody asks Redis.
func decidesByRule(t *testing.T, r *redistest.Mini, lim *hybrid.Limiter, rule hybrid.Limit) {
	t.Helper()
	settle()
	before := r.Counts()
	for _, key := range []string{"k", "new"} {
		for _, n := range []int{0, 1, 1_000_000_000} {
			want(t, fmt.Sprintf("AllowN(%q, %d)", key, n), allowN(t, lim, key, n), ruled[rule])
		}
		res, err := lim.Peek(t.Context(), key)
		want(t, "error of Peek", err, nil)
		want(t, "Peek", res, ruled[rule])
		want(t, "error of Reset", lim.Reset(t.Context(), key), nil)
		res, err = lim.WaitN(t.Context(), key, 3)
		if rule == hybrid.Unlimited {
			want(t, "error of Wait", err, nil)
			want(t, "Wait", res, ruled[rule])
		} else if !errors.Is(err, hybrid.ErrExceedsBurst) {
			t.Errorf("Wait on a blocked key: %+v, %v", res, err)
		}
	}
	want(t, "calls", r.Counts(), before)
}

func TestLimitsThatAreNoBucketFromTheBeginning(t *testing.T) {
	for rule := range ruled {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			lim := start(t, r, rule, named)
			decidesByRule(t, r, lim, rule)
			want(t, "dials", r.Counts().Dials, 0)
			setLimit(t, 0, hybrid.PerSecond(10), lim)
			res := allow(t, lim)
			want(t, "then", res.Source, hybrid.SourceRedis)
			want(t, "of a full bucket", res.Remaining, 9)
			want(t, "of a new key", allowN(t, lim, "another", 1).Remaining, 9)
		})
	}
}

func TestSetLimitToARuleReturnsTheLeaseAndBack(t *testing.T) {
	for rule := range ruled {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			limit := hybrid.PerHour(1).WithBurst(10_000)
			lim := start(t, r, limit, named)
			used := 0
			every(t, lim, 600, time.Millisecond, func(hybrid.Result) { used++ })
			want(t, "something is held", held(t, r) > 50, true)
			if err := lim.SetLimit(rule); err != nil {
				t.Fatal(err)
			}
			settle()
			want(t, "held then", held(t, r), 0)
			want(t, "tokens at the root", field(t, r, "t")/1_000_000, int64(10_000-used))
			want(t, "the limit at the root", r.Miniredis().HGet("rl:{n:k}", "l"), "1 1 3600 10000000000 0")
			decidesByRule(t, r, lim, rule)
			want(t, "breaker", lim.Stats().Breaker, "closed")
			if err := lim.SetLimit(limit); err != nil {
				t.Fatal(err)
			}
			res := allow(t, lim)
			want(t, "source, on the way back", res.Source, hybrid.SourceRedis)
			want(t, "tokens are kept", res.Remaining, 10_000-used-1)
			want(t, "tokens counted as lost or stranded", lim.Stats().TokensLost+lim.Stats().TokensExpired, 0)
			want(t, "error of Close", lim.Close(), nil)
		})
	}
}

func TestSetLimitToARuleWhileALeaseWithARateIsOut(t *testing.T) {
	for rule := range ruled {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			lim := start(t, r, hybrid.PerSecond(100), named)
			every(t, lim, 1500, time.Millisecond, func(hybrid.Result) {})
			want(t, "there is a rate", field(t, r, "p") > 0, true)
			setLimit(t, 1, rule, lim)
			settle()
			want(t, "rates then", field(t, r, "p"), 0)
			want(t, "held then", held(t, r), 0)
			decidesByRule(t, r, lim, rule)
		})
	}
}

// With a message under way it is the same, once its answer is there.
func TestSetLimitToARuleWhileAMessageIsUnderWay(t *testing.T) {
	for rule := range ruled {
		for _, fails := range []bool{false, true} {
			for _, ask := range []int{1, 5, 8} { // two are left: of 5 and of 8 all are refused
				bubble(t, func(t *testing.T, r *redistest.Mini) {
					lim := start(t, r, hybrid.PerSecond(10), named)
					allowN(t, lim, "k", 8)
					r.Delay(10 * time.Millisecond)
					if fails {
						r.DropReplies(1)
					}
					var all sync.WaitGroup
					all.Go(func() { allowN(t, lim, "k", ask) })
					all.Go(func() {
						time.Sleep(time.Millisecond)
						if _, err := lim.WaitN(t.Context(), "k", 2); (err != nil) != (rule == hybrid.Blocked) || err != nil && !errors.Is(err, hybrid.ErrExceedsBurst) {
							t.Errorf("a waiter behind it under %v: %v", rule, err)
						}
					})
					all.Go(func() {
						time.Sleep(2 * time.Millisecond)
						want(t, "one behind it", allow(t, lim), ruled[rule])
					})
					time.Sleep(3 * time.Millisecond)
					setLimit(t, 1, rule, lim)
					want(t, "one who comes then", allow(t, lim), ruled[rule])
					all.Wait()
					r.Heal()
					time.Sleep(time.Second)
					want(t, "held", held(t, r), 0)
					decidesByRule(t, r, lim, rule)
				})
			}
		}
	}
}

// What the answer to a renewal brings is given back as soon as it is there.
func TestSetLimitToARuleWhileARenewalIsUnderWay(t *testing.T) {
	for rule := range ruled {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			lim := start(t, r, hybrid.PerSecond(10_000), named)
			heat(t, lim)
			r.Delay(10 * time.Millisecond)
			before := r.Counts().Runs
			for r.Counts().Runs == before {
				allow(t, lim)
				time.Sleep(time.Millisecond)
				settle()
			}
			setLimit(t, 1, rule, lim)
			want(t, "held while the answer is on its way", held(t, r) > 0, true)
			time.Sleep(12 * time.Millisecond)
			settle()
			want(t, "held when it is there", held(t, r), 0)
			r.Heal()
			decidesByRule(t, r, lim, rule)
		})
	}
}

func TestBlockedAndBackFillsNoLocalShare(t *testing.T) {
	for rule := range ruled {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			limit := hybrid.PerSecond(10).WithBurst(100)
			lim := start(t, r, limit, named, hybrid.WithLocalShare(0.2))
			want(t, "the share", drain(t, lim, "k"), 20)
			for range 5 {
				setLimit(t, 1, rule, lim)
				setLimit(t, 1, limit, lim)
				want(t, "source of a refusal", allow(t, lim).Source, hybrid.SourcePrefilter)
			}
			time.Sleep(time.Second)
			want(t, "a second later", drain(t, lim, "k"), 2)
		})
	}
}

func TestSetLimitInTurnsUnderLoad(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		limit := hybrid.PerSecond(200)
		lim := start(t, r, limit, named)
		var all sync.WaitGroup
		begun := time.Now()
		got := new(record)
		for i := range 4 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond / 4)
				for time.Since(begun) < 5*time.Second {
					if res := allow(t, lim); res.Allowed && res.Source != hybrid.SourceRule {
						got.add(1)
					}
					time.Sleep(time.Millisecond)
				}
			})
		}
		for i := range 20 {
			time.Sleep(230 * time.Millisecond)
			setLimit(t, 1, []hybrid.Limit{hybrid.Blocked, limit, hybrid.Unlimited, limit}[i%4], lim)
		}
		all.Wait()
		got.inBound(t, 200, 200) // whatever the rules let pass beside it
		want(t, "breaker", lim.Stats().Breaker, "closed")
	})
}
