package hybrid_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// TestHandleDecidesAsTheLimiterDoes: the same requests through a handle and by
// name, each on a server of its own, have the same results.
func TestHandleDecidesAsTheLimiterDoes(t *testing.T) {
	course := func(handle bool) (log string) {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			lim := start(t, r, hybrid.PerSecond(100))
			k := lim.Key("k")
			begun := time.Now()
			for i := range 600 {
				n := 1 + i%3
				var res hybrid.Result
				var err error
				if handle {
					res, err = k.AllowN(t.Context(), n)
				} else {
					res, err = lim.AllowN(t.Context(), "k", n)
				}
				log += fmt.Sprintf("%v %+v %v\n", time.Since(begun), res, err)
				time.Sleep(7 * time.Millisecond)
			}
			want(t, "leased", lim.Stats().Allowed[hybrid.SourceLease] > 100, true)
			want(t, "keys", lim.Stats().Keys, 1)
		})
		return log
	}
	// When a refusal ends is drawn by lot, to the microsecond: what was decided is
	// compared until the first of them.
	byName, _, _ := strings.Cut(course(false), "Allowed:false")
	byHandle, _, _ := strings.Cut(course(true), "Allowed:false")
	want(t, "course", byHandle, byName)
	want(t, "decisions", strings.Count(byName, "Allowed:true") > 40, true)
}

func TestHandleOfAForgottenKey(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(1000), hybrid.WithMaxKeys(1))
		k := lim.Key("k")
		for range 300 {
			if res, err := k.Allow(t.Context()); err != nil || !res.Allowed {
				t.Fatal(res, err)
			}
			time.Sleep(2 * time.Millisecond)
		}
		before := lim.Stats()
		for range 3 { // one look for a place only clears the mark that the key was used
			allowN(t, lim, "another", 1)
		}
		want(t, "forgotten", lim.Stats().Evicted, 1)
		settle()
		want(t, "its lease was given back", lim.Stats().TokensReturned > before.TokensReturned, true)
		leased := lim.Stats().Allowed[hybrid.SourceLease]
		if res, err := k.Allow(t.Context()); err != nil || !res.Allowed || res.Source != hybrid.SourceRedis {
			t.Errorf("%+v, %v: the forgotten lease is spent", res, err)
		}
		want(t, "leased", lim.Stats().Allowed[hybrid.SourceLease], leased)
	})
}

func TestHandleOfWrongRequests(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(10))
		_, err := lim.Key("").Allow(t.Context())
		want(t, "no key", errors.Is(err, hybrid.ErrInvalidKey), true)
		k := lim.Key("k")
		want(t, "name", k.String(), "k")
		_, err = k.AllowN(t.Context(), -1)
		want(t, "negative", errors.Is(err, hybrid.ErrInvalidN), true)
		_, err = k.AllowN(t.Context(), 11)
		want(t, "too many", errors.Is(err, hybrid.ErrExceedsBurst), true)
		want(t, "nothing is remembered", lim.Stats().Keys, 0)
		res, err := k.AllowN(t.Context(), 0)
		if err != nil || res.Remaining != 10 {
			t.Errorf("a look: %+v, %v", res, err)
		}
		if _, err := k.WaitN(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
		res, err = k.Peek(t.Context())
		if err != nil || res.Remaining != 0 {
			t.Errorf("after all ten: %+v, %v", res, err)
		}
		if err := k.Reset(t.Context()); err != nil {
			t.Fatal(err)
		}
		res, err = k.Wait(t.Context())
		if err != nil || res.Remaining != 9 {
			t.Errorf("after a reset: %+v, %v", res, err)
		}
		if err := lim.Close(); err != nil {
			t.Fatal(err)
		}
		_, err = k.Allow(t.Context())
		want(t, "closed", errors.Is(err, hybrid.ErrClosed), true)
	})
}

// TestHandleAllocatesNothing stands still in time, as with a look-up.
func TestHandleAllocatesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(1_000_000))
		for range 500 {
			allowN(t, lim, "k", 100)
			time.Sleep(time.Millisecond)
			settle()
		}
		ctx, k := t.Context(), lim.Key("k")
		want(t, "allocations", testing.AllocsPerRun(1000, func() {
			if res, err := k.Allow(ctx); err != nil || res.Source != hybrid.SourceLease {
				t.Fatalf("%+v, %v", res, err)
			}
		}), 0)
	})
}
