package hybrid_test

import (
	"errors"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

func TestShadowAdmitsEverythingAndCountsWhatItWouldRefuse(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerMinute(10), hybrid.WithShadow())
		for i := range 30 {
			res := allow(t, lim)
			if !res.Allowed || res.Shadow != (i >= 10) || (res.RetryAfter > 0) != res.Shadow {
				t.Errorf("request %d: %+v", i, res)
			}
		}
		res := allowN(t, lim, "k", 11) // can never pass
		want(t, "more than the burst", res.Allowed && res.Shadow, true)
		begun := time.Now()
		res, err := lim.Wait(t.Context(), "k")
		if err != nil || !res.Allowed || !res.Shadow {
			t.Errorf("%+v, %v", res, err)
		}
		want(t, "Wait took", time.Since(begun), 0)
		s := lim.Stats()
		want(t, "shadowed", s.Shadowed, 22)
		want(t, "refused", s.Refused[hybrid.SourceRedis]+s.Refused[hybrid.SourceDenied], 21)

		_, err = lim.Allow(t.Context(), "")
		want(t, "a wrong key", errors.Is(err, hybrid.ErrInvalidKey), true)
		if err := lim.Close(); err != nil {
			t.Fatal(err)
		}
		_, err = lim.Allow(t.Context(), "k")
		want(t, "closed", errors.Is(err, hybrid.ErrClosed), true)
	})
}

// TestShadowSpendsAsALimitWould: what it admits beyond the limit costs nothing.
func TestShadowSpendsAsALimitWould(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		shadow := start(t, r, hybrid.PerMinute(10), hybrid.WithShadow())
		for range 25 {
			allow(t, shadow)
		}
		lim := start(t, r, hybrid.PerMinute(10))
		want(t, "empty", allow(t, lim).Allowed, false)
		time.Sleep(6 * time.Second)
		want(t, "one later", allow(t, lim).Allowed, true)
		want(t, "no more", allow(t, lim).Allowed, false)
	})
}
