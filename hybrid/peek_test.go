package hybrid_test

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// peek looks at "k".
func peek(t *testing.T, lim *hybrid.Limiter) hybrid.Result {
	t.Helper()
	res, err := lim.Peek(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestPeekNeverWrites(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerMinute(60))
		if res := peek(t, lim); !res.Allowed || res.Remaining != 60 || res.ResetAfter != 0 || res.Source != hybrid.SourceRedis {
			t.Errorf("of an unknown key: %+v", res)
		}
		want(t, "keys in Redis", len(r.Miniredis().Keys()), 0)
		allowN(t, lim, "k", 10)
		time.Sleep(3 * time.Second)
		before, key := r.Miniredis().Dump(), r.Miniredis().Keys()[0]
		ttl := r.Miniredis().TTL(key)
		for range 3 {
			if res := peek(t, lim); !res.Allowed || res.Remaining != 53 || res.ResetAfter != 7*time.Second || res.RetryAfter != 0 {
				t.Errorf("%+v, want 53 remaining", res)
			}
		}
		want(t, "state in Redis", r.Miniredis().Dump(), before)
		want(t, "TTL in Redis", r.Miniredis().TTL(key), ttl)
		want(t, "keys remembered", lim.Stats().Keys, 1)
	})
}

func TestPeekSeesTheOwnLeaseAndNotThatOfOthers(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		limit := hybrid.PerHour(1).WithBurst(10_000)
		lim, other := start(t, r, limit), start(t, r, limit)
		every(t, lim, 1000, time.Millisecond, func(hybrid.Result) {})
		s := lim.Stats()
		held := int(s.TokensGranted - s.Allowed[hybrid.SourceLease])
		want(t, "what the holder sees", peek(t, lim).Remaining, 9000)
		want(t, "what another sees", peek(t, other).Remaining, 9000-held)
		want(t, "something is held", held > 10, true)
	})
}

func TestPeekOfAnEmptyBucketSaysWhen(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.Per(7, 3*time.Second))
		allowN(t, lim, "k", 7)
		res := peek(t, lim)
		if res.Allowed || res.Remaining != 0 || res.RetryAfter != 428572*time.Microsecond || res.ResetAfter != 3*time.Second {
			t.Errorf("%+v", res)
		}
		time.Sleep(res.RetryAfter)
		want(t, "then", peek(t, lim).Allowed, true)
		want(t, "and in deed", allow(t, lim).Allowed, true)
	})
}

func TestPeekInAnOutageAnswersFromHere(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(10), hybrid.WithExpectedInstances(2))
		warm(t, lim)
		allowN(t, lim, "k", 10)
		r.Freeze()
		var res hybrid.Result
		d := took(func() { res = peek(t, lim) })
		if res.Allowed || res.Source != hybrid.SourceDegraded || res.RetryAfter <= 0 {
			t.Errorf("of an empty bucket: %+v", res)
		}
		want(t, "time", d, hybrid.DefaultRemoteTimeout)
		trip(t, lim)
		time.Sleep(200 * time.Millisecond) // a part of one token
		d = took(func() { res = peek(t, lim) })
		want(t, "time with the breaker open", d, 0)
		after := peek(t, lim)
		want(t, "a second look", after, res)
		decided := allow(t, lim)
		if res.Allowed != decided.Allowed || !res.Allowed && res.RetryAfter != decided.RetryAfter {
			t.Errorf("Peek says %+v, Allow %+v", res, decided)
		}
		if res, err := lim.Peek(t.Context(), "unseen"); err != nil || !res.Allowed || res.Remaining != 5 || res.Source != hybrid.SourceDegraded {
			t.Errorf("of a key never seen: %+v, %v", res, err)
		}
		want(t, "of a key never seen, after Peek", allowN(t, lim, "unseen", 5).Allowed, true)
	})
}

func TestPeekInAnOutageFollowsThePolicy(t *testing.T) {
	for policy, allowed := range map[hybrid.OutagePolicy]bool{hybrid.FailOpen: true, hybrid.FailClosed: false} {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			r.Kill()
			lim := start(t, r, hybrid.PerSecond(10), hybrid.WithOutagePolicy(policy))
			trip(t, lim)
			res := peek(t, lim)
			if res.Allowed != allowed || (res.RetryAfter > 0) == allowed || res.Source != hybrid.SourceDegraded {
				t.Errorf("policy %d: %+v", policy, res)
			}
		})
	}
}

func TestResetFillsTheBucket(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerHour(7), hybrid.WithLocalShare(0.8))
		want(t, "of the share", drain(t, lim, "k"), 5)
		other := start(t, r, hybrid.PerHour(7))
		drain(t, other, "k")
		want(t, "a denial stands", allow(t, other).Source, hybrid.SourceDenied)
		if err := other.Reset(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		want(t, "full for the one who reset", peek(t, other).Remaining, 7)
		want(t, "the denial is forgotten", allow(t, other).Remaining, 6)
		want(t, "a share of another instance stays used", allow(t, lim).Source, hybrid.SourcePrefilter)
		if err := lim.Reset(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		want(t, "the own share is filled", drain(t, lim, "k"), 5)
		if err := lim.Reset(t.Context(), "never seen"); err != nil {
			t.Error(err)
		}
	})
}

func TestResetKeepsWhatIsOutOnLease(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		limit := hybrid.PerHour(1).WithBurst(1000)
		lim, other := start(t, r, limit), start(t, r, limit)
		every(t, lim, 300, time.Millisecond, func(hybrid.Result) {})
		s := lim.Stats()
		// The root counts a token as out until the holder's next message.
		held := int(s.TokensGranted - s.Allowed[hybrid.SourceLease])
		micro, err := strconv.Atoi(r.Miniredis().HGet(r.Miniredis().Keys()[0], "o"))
		if out := micro / 1e6; err != nil || out < held || out > 300 {
			t.Fatalf("the root counts %d as out (%v) while %d are held", out, err, held)
		}
		if err := other.Reset(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		want(t, "the root fills up beside what is out", peek(t, other).Remaining, 1000-micro/1e6)
		admitted := drain(t, other, "k") + drain(t, lim, "k")
		if admitted > 1000 {
			t.Errorf("%d admitted after a reset, want at most 1000", admitted)
		}
	})
}

func TestResetServesThoseWhoWait(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerHour(3))
		drain(t, lim, "k")
		served := make(chan error, 1)
		go func() {
			_, err := lim.WaitN(t.Context(), "k", 3)
			served <- err
		}()
		time.Sleep(time.Second)
		if err := lim.Reset(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		d := took(func() { want(t, "error", <-served, nil) })
		want(t, "time until it is served", d, 0)
	})
}

func TestResetInAnOutageIsUnavailable(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(10))
		warm(t, lim)
		reset := func() error { return lim.Reset(t.Context(), "k") }
		r.FailWith("LOADING Redis is loading the dataset in memory")
		if err := reset(); !errors.Is(err, hybrid.ErrUnavailable) {
			t.Errorf("while Redis loads: %v", err)
		}
		r.Heal()
		r.Freeze()
		want(t, "time", took(func() {
			if err := reset(); !errors.Is(err, hybrid.ErrUnavailable) {
				t.Errorf("while Redis is frozen: %v", err)
			}
		}), hybrid.DefaultRemoteTimeout)
		trip(t, lim)
		want(t, "time with the breaker open", took(func() {
			if err := reset(); !errors.Is(err, hybrid.ErrUnavailable) {
				t.Errorf("with the breaker open: %v", err)
			}
		}), 0)
	})
}
