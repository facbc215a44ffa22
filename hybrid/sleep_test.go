package hybrid_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// TestLeasesEndWhenTheMachineSleeps: what is held is not spent after a suspend,
// once half a horizon has passed, and a moment later new permits are there.
func TestLeasesEndWhenTheMachineSleeps(t *testing.T) {
	for _, c := range []struct {
		jump time.Duration
		ends bool
	}{
		{1100 * time.Millisecond, true},
		{-time.Hour, true}, // somebody set the clock: nobody can tell that from a sleep
		{900 * time.Millisecond, false},
		{0, false},
	} {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			lim := start(t, r, hybrid.PerSecond(1000))
			jump := hybrid.Sleep(lim)
			every(t, lim, 500, 2*time.Millisecond, func(hybrid.Result) {})
			before := lim.Stats()
			held := before.TokensGranted - before.TokensReturned - before.TokensExpired - before.Allowed[hybrid.SourceLease]
			want(t, "something is held", held > 0, true)
			jump(c.jump)
			time.Sleep(100 * time.Millisecond)
			after := lim.Stats()
			want(t, "expired", after.TokensExpired-before.TokensExpired > 0, c.ends)
			every(t, lim, 100, 2*time.Millisecond, func(res hybrid.Result) {
				if !res.Allowed {
					t.Errorf("%+v", res)
				}
			})
			want(t, "leased again", lim.Stats().Allowed[hybrid.SourceLease] > after.Allowed[hybrid.SourceLease], true)
		})
	}
}

// TestAnswerFromBeforeTheSleepBringsNoLease: the message was sent before.
func TestAnswerFromBeforeTheSleepBringsNoLease(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		rdb := r.Client(advised, func(o *redis.Options) { o.ReadTimeout = 200 * time.Millisecond })
		lim := startOn(t, rdb, hybrid.PerSecond(1000), hybrid.WithRemoteTimeout(200*time.Millisecond))
		jump := hybrid.Sleep(lim)
		every(t, lim, 500, 2*time.Millisecond, func(hybrid.Result) {})
		r.Delay(120 * time.Millisecond)
		for s := lim.Stats(); s.TokensGranted > s.Allowed[hybrid.SourceLease]+s.TokensExpired+s.TokensReturned; s = lim.Stats() {
			allow(t, lim) // until the lease is spent: its renewal is under way by then
		}
		before := lim.Stats()
		jump(time.Hour) // seen within 100 ms, when the answer is still on its way
		time.Sleep(500 * time.Millisecond)
		after := lim.Stats()
		want(t, "an answer came", after.TokensGranted > before.TokensGranted, true)
		want(t, "held", after.TokensGranted-after.TokensReturned-after.TokensExpired-after.Allowed[hybrid.SourceLease], 0)
		want(t, "nothing given back that was dropped", after.TokensReturned, before.TokensReturned)
	})
}
