package hybrid_test

import (
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

func TestEachSourceDecides(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(100), hybrid.WithLocalShare(0.5))
		seen := map[string]bool{}
		see := func(res hybrid.Result) {
			text := res.Source.String() + " refused"
			if res.Allowed {
				text = res.Source.String() + " admitted"
			}
			seen[text] = true
		}
		for range 60 { // the share of 50 is used up
			see(allow(t, lim))
		}
		small := start(t, r, hybrid.PerHour(1))
		for range 3 {
			see(allow(t, small))
		}
		r.Kill()
		for range 10 {
			see(allowN(t, lim, "other", 1))
			see(allowN(t, start(t, r, hybrid.PerHour(1)), "other", 1))
		}
		closed := start(t, r, hybrid.PerHour(1), hybrid.WithOutagePolicy(hybrid.FailClosed))
		see(allow(t, closed))
		for _, text := range []string{
			"prefilter refused", "lease admitted", "redis admitted", "redis refused", "denied refused",
			"degraded admitted", "degraded refused",
		} {
			want(t, text, seen[text], true)
		}
		want(t, "kinds of decisions", len(seen), 7)
	})
}

func TestSourceNames(t *testing.T) {
	for source, name := range map[hybrid.Source]string{
		0: "none", hybrid.SourcePrefilter: "prefilter", hybrid.SourceLease: "lease",
		hybrid.SourceDenied: "denied", hybrid.SourceRedis: "redis", hybrid.SourceDegraded: "degraded", 99: "none",
	} {
		want(t, "name", source.String(), name)
	}
}

func TestDenialStandsForOneHorizonAtMost(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerHour(1))
		allow(t, lim)
		if res := allow(t, lim); res.Source != hybrid.SourceRedis || res.RetryAfter != time.Hour {
			t.Fatalf("first refusal: %+v", res)
		}
		begun := time.Now()
		calls := r.Counts().Runs
		for {
			res := allow(t, lim)
			since := time.Since(begun)
			// Redis tells whole micro-tokens, which take 3.6 ms each.
			late := res.RetryAfter - (time.Hour - since)
			if res.Allowed || late < 0 || late > 3600*time.Microsecond || late > 0 && res.Source == hybrid.SourceDenied {
				t.Fatalf("after %v: %+v, want a retry after %v", since, res, time.Hour-since)
			}
			if res.Source == hybrid.SourceRedis {
				// The horizon is shortened by up to a quarter, so that instances do not
				// ask together.
				if since < 150*time.Millisecond || since > 201*time.Millisecond {
					t.Errorf("Redis was asked again after %v, want 150 to 200 ms", since)
				}
				break
			}
			want(t, "source", res.Source, hybrid.SourceDenied)
			want(t, "calls meanwhile", r.Counts().Runs, calls)
			time.Sleep(time.Millisecond)
		}
		want(t, "calls", r.Counts().Runs, calls+1)
	})
}

func TestDenialOfManyDoesNotDenyFew(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerMinute(10))
		want(t, "7 of 10", allowN(t, lim, "k", 7).Allowed, true)
		want(t, "5 of 3", allowN(t, lim, "k", 5).Source, hybrid.SourceRedis)
		if res := allowN(t, lim, "k", 5); res.Source != hybrid.SourceDenied || res.Remaining != 3 || res.RetryAfter != 12*time.Second {
			t.Errorf("5 of 3 again: %+v", res)
		}
		if res := allowN(t, lim, "k", 3); !res.Allowed || res.Source != hybrid.SourceRedis || res.Remaining != 0 {
			t.Errorf("3 of 3: %+v", res)
		}
	})
}

func TestDenialSpendsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(10))
		allowN(t, lim, "k", 10)
		for range 500 { // refused all the way, by Redis and from memory
			if allowN(t, lim, "k", 6).Allowed {
				t.Fatal("6 tokens before there were any")
			}
			time.Sleep(time.Millisecond)
		}
		want(t, "tokens after half a second", allowN(t, lim, "k", 0).Remaining, 5)
		time.Sleep(100 * time.Millisecond)
		want(t, "6 tokens in time", allowN(t, lim, "k", 6).Allowed, true)
	})
}

func TestPrefilterAsksNobody(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(10), hybrid.WithLocalShare(0.5))
		want(t, "share at once", drain(t, lim, "k"), 5)
		calls := r.Counts()
		res := allow(t, lim)
		if res.Source != hybrid.SourcePrefilter || res.RetryAfter != 200*time.Millisecond || res.Remaining != 0 {
			t.Errorf("beyond the share: %+v", res)
		}
		want(t, "calls of a refusal", r.Counts().Sub(calls), redistest.Counts{})
		time.Sleep(res.RetryAfter)
		want(t, "after RetryAfter", allow(t, lim).Allowed, true)
		want(t, "for another instance", drain(t, start(t, r, hybrid.PerSecond(10)), "k"), 6)
	})
}
