package hybrid_test

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// setLimit gives a limiter another limit, with a higher version than before.
func setLimit(t testing.TB, version int64, limit hybrid.Limit, lims ...*hybrid.Limiter) {
	t.Helper()
	for _, lim := range lims {
		if err := lim.SetLimitVersion(limit, version); err != nil {
			t.Fatal(err)
		}
		want(t, "Limit", lim.Limit(), limit)
	}
}

// field is a number of the state of "k" of a limiter with the name "n".
func field(t testing.TB, r *redistest.Mini, name string) int64 {
	t.Helper()
	text := r.Miniredis().HGet("rl:{n:k}", name)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// named is the name of limiters that agree about the name and not about the limit.
var named = hybrid.WithName("n")

// The limits are too slow for leases with a rate, so that times are exact.
func TestSetLimitKeepsTokensAsFarAsTheyFit(t *testing.T) {
	for _, c := range []struct {
		from, to hybrid.Limit
		take     int
		left     int           // then
		one      time.Duration // in which a token is gained then
	}{
		{hybrid.PerSecond(100), hybrid.PerSecond(10).WithBurst(20), 30, 20, 100 * time.Millisecond},
		{hybrid.PerSecond(100), hybrid.PerSecond(10).WithBurst(20), 85, 15, 100 * time.Millisecond},
		{hybrid.PerSecond(100), hybrid.PerSecond(10).WithBurst(20), 100, 0, 100 * time.Millisecond},
		{hybrid.PerSecond(10).WithBurst(100), hybrid.PerSecond(10).WithBurst(20), 30, 20, 100 * time.Millisecond},
		{hybrid.PerSecond(100), hybrid.PerSecond(10).WithBurst(100), 30, 70, 100 * time.Millisecond},
		{hybrid.PerSecond(2).WithBurst(20), hybrid.PerSecond(10).WithBurst(100), 15, 5, 100 * time.Millisecond},
		{hybrid.PerSecond(10).WithBurst(20), hybrid.PerSecond(10).WithBurst(90), 15, 5, 100 * time.Millisecond},
		{hybrid.PerMinute(60), hybrid.Per(7, 3*time.Second), 55, 5, 428572 * time.Microsecond},
	} {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			lim := start(t, r, c.from, named)
			want(t, "at first", allowN(t, lim, "k", c.take).Remaining, c.from.Burst()-c.take)
			setLimit(t, 1, c.to, lim)
			res := allowN(t, lim, "k", 0)
			want(t, "left", res.Remaining, c.left)
			want(t, "limit of a look", res.Limit, c.to)
			if c.left > 0 {
				res = allowN(t, lim, "k", c.left)
				want(t, "what is left can be had", res.Allowed, true)
				want(t, "limit of an admission", res.Limit, c.to)
			}
			res = allow(t, lim)
			want(t, "one more", res.Allowed, false)
			want(t, "limit of a refusal", res.Limit, c.to)
			want(t, "time for one", res.RetryAfter, c.one)
			time.Sleep(c.one)
			want(t, "after that", allow(t, lim).Allowed, true)
		})
	}
}

// Without a version the smaller limit stands, since others may go by it: a higher
// one applies when nobody asked for the smaller one for as long as a lease lasts.
func TestSetLimitUpWithoutAVersionTakesOneLease(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		low, high := hybrid.PerMinute(60).WithBurst(100), hybrid.PerMinute(120).WithBurst(200)
		lim := start(t, r, low, named, hybrid.WithLeaseHorizon(5*time.Second)) // leases of 25 s
		allowN(t, lim, "k", 100)
		if err := lim.SetLimit(high); err != nil {
			t.Fatal(err)
		}
		want(t, "Limit is what was set", lim.Limit(), high)
		want(t, "at first", allowN(t, lim, "k", 1).Limit, hybrid.Per(1, time.Second).WithBurst(100))
		asked := time.Now()
		time.Sleep(25*time.Second - time.Microsecond)
		res := allowN(t, lim, "k", 0)
		want(t, "limit a moment before", res.Limit, hybrid.Per(1, time.Second).WithBurst(100))
		want(t, "left a moment before", res.Remaining, 24)
		time.Sleep(time.Until(asked.Add(25 * time.Second)))
		res = allowN(t, lim, "k", 25)
		want(t, "limit after the lease", res.Limit, high)
		want(t, "tokens are kept", res.Allowed, true)
		want(t, "and there are no more", res.Remaining, 25)
	})
}

func TestSetLimitDownWithoutAVersionAppliesAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim, other := start(t, r, hybrid.PerSecond(100), named), start(t, r, hybrid.PerSecond(100), named)
		allowN(t, other, "k", 10)
		if err := lim.SetLimit(hybrid.PerSecond(50)); err != nil {
			t.Fatal(err)
		}
		res := allowN(t, lim, "k", 10)
		want(t, "limit", res.Limit, hybrid.PerSecond(50))
		want(t, "remaining", res.Remaining, 40)
		want(t, "of the other one, with its next message", allowN(t, other, "k", 10).Limit, hybrid.PerSecond(50))
	})
}

func TestSetLimitThatIsInvalidChangesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		limit := hybrid.PerSecond(10)
		lim := start(t, r, limit, hybrid.WithLocalShare(0.5), hybrid.WithLimitVersion(5), named)
		allowN(t, lim, "k", 1)
		refused := func(what, field string, err error) {
			t.Helper()
			var config *hybrid.ConfigError
			if !errors.As(err, &config) || config.Field != field || config.Reason == "" {
				t.Errorf("%s: %v, want a *ConfigError of %s", what, err, field)
			}
			want(t, what+": Limit", lim.Limit(), limit)
		}
		for _, bad := range []hybrid.Limit{
			{},
			hybrid.PerSecond(0), hybrid.PerSecond(-1), hybrid.Per(1, 0), hybrid.Per(1, -time.Second),
			limit.WithBurst(0), limit.WithBurst(-1), hybrid.Per(7, 3*time.Second).WithBurst(2_000_000_000),
			hybrid.Unlimited.WithBurst(5), hybrid.Blocked.WithBurst(1),
		} {
			refused(bad.String(), "Limit", lim.SetLimit(bad))
			refused(bad.String(), "Limit", lim.SetLimitVersion(bad, 6))
		}
		refused("a share of nothing", "WithLocalShare", lim.SetLimit(limit.WithBurst(1)))
		refused("a negative version", "SetLimitVersion", lim.SetLimitVersion(hybrid.PerSecond(20), -1))
		refused("a version beyond 2^53", "SetLimitVersion", lim.SetLimitVersion(hybrid.PerSecond(20), 1<<53))
		res := allowN(t, lim, "k", 1)
		want(t, "limit of a decision", res.Limit, limit)
		want(t, "remaining", res.Remaining, 8)
		want(t, "the stored limit", r.Miniredis().HGet("rl:{n:k}", "l"), "1 10 1 10000000 5")
	})
}

func TestSetLimitVersionIsWhatRedisIsTold(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(10), hybrid.WithLimitVersion(3), named)
		stored := func() string { return r.Miniredis().HGet("rl:{n:k}", "l") }
		allow(t, lim)
		want(t, "at first", stored(), "1 10 1 10000000 3")
		for _, version := range []int64{4, 1<<53 - 1} {
			setLimit(t, version, hybrid.PerSecond(20), lim)
			allow(t, lim)
			want(t, "later", stored(), "1 20 1 20000000 "+strconv.FormatInt(version, 10))
		}
		if err := lim.SetLimit(hybrid.PerSecond(5)); err != nil {
			t.Fatal(err)
		}
		allow(t, lim)
		want(t, "SetLimit keeps the version", stored(), "1 5 1 5000000 9007199254740991")
	})
}

func TestSetLimitAfterClose(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(10))
		allow(t, lim)
		if err := lim.Close(); err != nil {
			t.Fatal(err)
		}
		calls := r.Counts()
		for _, limit := range []hybrid.Limit{hybrid.PerSecond(20), hybrid.Blocked, hybrid.Unlimited, {}} {
			if err := lim.SetLimit(limit); !errors.Is(err, hybrid.ErrClosed) {
				t.Errorf("SetLimit(%v) after Close: %v", limit, err)
			}
		}
		want(t, "Limit", lim.Limit(), hybrid.PerSecond(10))
		settle()
		want(t, "calls", r.Counts(), calls)
	})
}
