package hybrid_test

import (
	"maps"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// A key in demand is decided from leases by the algorithms that have any, which saves
// nearly all calls, and by Redis for all who wait together by the others.
func TestModesOfTheAlgorithms(t *testing.T) {
	conform(t, func(t *testing.T, r *redistest.Mini, algo hybrid.Algorithm) {
		lim := start(t, r, hybrid.Per(10_000, 2*time.Second), hybrid.WithAlgorithm(algo))
		warm(t, lim)
		before := r.Counts()
		for range 200 {
			var wg sync.WaitGroup
			for range 5 {
				wg.Go(func() { allow(t, lim) })
			}
			wg.Wait()
			time.Sleep(time.Millisecond)
		}
		calls := r.Counts().Sub(before).EvalSHA
		t.Logf("%d calls for 1000 requests", calls)
		wanted := map[string]int{"exact": 2, "lump": 0, "rate": 0} // and the key of warm
		if algo == hybrid.TokenBucket || algo == hybrid.FixedWindow {
			wanted["exact"], wanted["lump"] = 1, 1
			if calls > 20 {
				t.Errorf("%d calls for 1000 requests", calls)
			}
		} else if calls < 200 || calls > 600 { // who comes first goes alone
			t.Errorf("%d calls for 200 batches", calls)
		}
		if got := lim.Stats().Modes; !maps.Equal(got, wanted) {
			t.Errorf("modes %v, want %v", got, wanted)
		}
	})
}

// A flood of requests that Redis has refused does not reach it.
func TestRefusalsStandUnderAllAlgorithms(t *testing.T) {
	conform(t, func(t *testing.T, r *redistest.Mini, algo hybrid.Algorithm) {
		lim := start(t, r, hybrid.PerHour(10), hybrid.WithAlgorithm(algo))
		warm(t, lim)
		drain(t, lim, "k")
		before := r.Counts()
		for range 2000 {
			if allow(t, lim).Allowed {
				t.Fatal("admitted")
			}
			time.Sleep(500 * time.Microsecond)
		}
		if calls := r.Counts().Sub(before).EvalSHA; calls > 8 { // a second has five horizons, a little shortened
			t.Errorf("%d calls for a second of refusals", calls)
		}
		res := allow(t, lim)
		if res.RetryAfter < 300*time.Second || res.RetryAfter > time.Hour+6*time.Minute || res.ResetAfter < res.RetryAfter {
			t.Errorf("%+v", res)
		}
	})
}

// In an outage each instance has its part whatever the algorithm, and when Redis is
// back so is the limit.
func TestOutagesUnderAllAlgorithms(t *testing.T) {
	conform(t, func(t *testing.T, r *redistest.Mini, algo hybrid.Algorithm) {
		limit := hybrid.PerMinute(120)
		lims := clients(t, r, 2, limit, hybrid.WithAlgorithm(algo), hybrid.WithExpectedInstances(2))
		for _, lim := range lims {
			warm(t, lim)
		}
		r.Partition()
		for _, lim := range lims {
			for lim.Stats().Breaker != "open" { // on keys that nobody counts
				allowN(t, lim, "other", 1)
				time.Sleep(time.Millisecond)
			}
			want(t, "admitted of a part", drain(t, lim, "k"), 60)
			res := allow(t, lim)
			if res.Source != hybrid.SourceDegraded || res.RetryAfter != time.Second {
				t.Errorf("%+v", res)
			}
			time.Sleep(10 * time.Second)
			want(t, "admitted after ten seconds", drain(t, lim, "k"), 10)
		}
		r.Heal()
		time.Sleep(5 * time.Second)
		if res := allowN(t, lims[0], "new", 120); !res.Allowed || res.Source != hybrid.SourceRedis {
			t.Errorf("%+v after the outage", res)
		}
	})
}

// The clock of an instance decides nothing: one whose wall clock jumps is given no more
// and takes nothing from the others.
func TestWallClocksOfInstancesDoNotMatter(t *testing.T) {
	conform(t, func(t *testing.T, r *redistest.Mini, algo hybrid.Algorithm) {
		limit := hybrid.PerSecond(50)
		lims := clients(t, r, 2, limit, hybrid.WithAlgorithm(algo))
		jump := hybrid.Sleep(lims[1])
		var rec record
		for i := range 1500 {
			if i%250 == 125 {
				jump([]time.Duration{time.Hour, -2 * time.Hour, 24 * time.Hour}[i/250%3])
			}
			if allow(t, lims[i%2]).Allowed {
				rec.add(1)
			}
			time.Sleep(4 * time.Millisecond)
		}
		// A jump ends the leases of its instance, as a suspended machine's do.
		if got := rec.total(); got < 6*50*75/100 {
			t.Errorf("%d were admitted in 6 s, want nearly 300", got)
		}
		keeps(t, algo, limit, &rec)
	})
}

// A lease of a fixed window ends with it: what is not spent is not there in the
// next one, which has all of its tokens.
func TestLeasesOfAFixedWindowEndWithIt(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		limit := hybrid.Per(1000, 2*time.Second)
		lims := clients(t, r, 2, limit, hybrid.WithAlgorithm(hybrid.FixedWindow))
		var rec record
		begun := time.Now()
		for time.Since(begun) < 2*time.Second-time.Millisecond {
			if allow(t, lims[0]).Allowed {
				rec.add(1)
			}
			time.Sleep(5 * time.Millisecond)
		}
		want(t, "admitted in the window", rec.total(), 400)
		time.Sleep(2 * time.Millisecond)
		want(t, "left for another instance in the next one", drain(t, lims[1], "k"), 1000)
		if res := allow(t, lims[0]); res.Allowed || res.ResetAfter > 2*time.Second {
			t.Errorf("a permit of the last window: %+v", res)
		}
		if lim := lims[0]; lim.Stats().TokensExpired == 0 {
			t.Errorf("nothing was on lease at the end: the test shows nothing")
		}
	})
}

// victim names the variable that makes the test binary a client that is killed.
const victim = "LIMITER_TEST_VICTIM"

// Clients are killed wherever they are: every key has a time to live all the same.
func TestKilledClientsLeaveNoKeyForEver(t *testing.T) {
	if addr := os.Getenv(victim); addr != "" {
		beKilled(t, addr)
		return
	}
	r := redistest.Server(t)
	rdb := r.Client()
	for i := range runs(2, 100) {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledClientsLeaveNoKeyForEver$")
		cmd.Env = append(os.Environ(), victim+"="+r.Addr())
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// It is killed when it has sent so much.
		before := r.Counts().EvalSHA
		for deadline := time.Now().Add(30 * time.Second); r.Counts().EvalSHA < before+20+37*i; {
			if time.Now().After(deadline) {
				t.Error("the client does nothing")
				break
			}
			runtime.Gosched()
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	keys := rdb.Keys(t.Context(), "*").Val()
	if len(keys) < 5 {
		t.Errorf("only the keys %v", keys)
	}
	for _, key := range keys {
		if ttl := rdb.PTTL(t.Context(), key).Val(); ttl <= 0 {
			t.Errorf("key %s has a time to live of %v", key, ttl)
		}
	}
}

// beKilled asks until its process is killed.
func beKilled(t *testing.T, addr string) {
	var wg sync.WaitGroup
	for _, algo := range everyAlgorithm {
		rdb := newClient(addr)
		lim := startOn(t, rdb, hybrid.PerHour(1000), hybrid.WithAlgorithm(algo))
		for i := range 3 {
			wg.Go(func() {
				for n := 0; ; n++ {
					allowN(t, lim, strconv.Itoa((n+i)%20), 1+n%3)
				}
			})
		}
		wg.Go(func() {
			for n := 0; ; n++ {
				b, err := lim.Reserve(t.Context(), hybrid.Request{Key: strconv.Itoa(n % 20), N: 50})
				if err == nil && b.Cancel() == 0 {
					_ = b.Settle(n % 90)
				}
			}
		})
	}
	tiers := startOn(t, newClient(addr), hybrid.PerSecond(100), hybrid.WithTiers(hybrid.PerHour(1000)))
	wg.Go(func() {
		for n := 0; ; n++ {
			combine(t, part(tiers, strconv.Itoa(n%20), 1), part(tiers, strconv.Itoa(n%7), 2))
		}
	})
	wg.Wait()
}

// Those who wait for a leaky bucket pass one by one at its rate, whichever instance
// they wait on.
func TestWaitersOfALeakyBucketArePaced(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lims := clients(t, r, 2, hybrid.PerSecond(50), hybrid.WithAlgorithm(hybrid.LeakyBucket))
		warm(t, lims[0])
		warm(t, lims[1])
		before := r.Counts()
		var rec record
		var wg sync.WaitGroup
		begun := time.Now()
		for i := range 200 {
			wg.Go(func() {
				res, err := lims[i%2].Wait(t.Context(), "k")
				if err != nil || !res.Allowed {
					t.Errorf("%+v, %v", res, err)
				}
				rec.add(1)
			})
		}
		wg.Wait()
		// The first at once, and each other one 20 ms after the last.
		if took := time.Since(begun); took < 199*20*time.Millisecond || took > 4100*time.Millisecond {
			t.Errorf("200 took %v, want 3.98s", took)
		}
		if most := rec.most(19 * time.Millisecond); most > 1 {
			t.Errorf("%d passed within 19 ms", most)
		}
		if calls := r.Counts().Sub(before).EvalSHA; calls > 100 {
			t.Errorf("%d calls for 200 turns: turns are not booked together", calls)
		}
	})
}

// Who waits for a leaky bucket and has a deadline before its turn is told at once, and
// takes no turn from the others.
func TestTurnsAfterADeadlineAreNotTaken(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(10), hybrid.WithAlgorithm(hybrid.LeakyBucket))
		warm(t, lim)
		want(t, "taken", allowN(t, lim, "k", 5).Allowed, true) // half a second to drain
		other := start(t, r, hybrid.PerSecond(10), hybrid.WithAlgorithm(hybrid.LeakyBucket))
		warm(t, other)
		for _, after := range []time.Duration{10, 100, 150, 499} {
			begun := time.Now()
			ctx, cancel := contextFor(t, after*time.Millisecond)
			if _, err := other.Wait(ctx, "k"); !isTooLate(err) {
				t.Errorf("a deadline after %d ms: %v", after, err)
			}
			cancel()
			if d := time.Since(begun); d > time.Millisecond {
				t.Errorf("it took %v to say so", d)
			}
		}
		want(t, "room", allowN(t, lim, "k", 0).Remaining, 5)
		begun := time.Now()
		ctx, cancel := contextFor(t, 550*time.Millisecond)
		defer cancel()
		if _, err := other.Wait(ctx, "k"); err != nil || time.Since(begun) < 499*time.Millisecond {
			t.Errorf("a deadline after the turn: %v after %v", err, time.Since(begun))
		}
		synctest.Wait()
	})
}

// A turn that was booked for somebody who leaves before it comes is lost, and said to be.
func TestTurnsOfThoseWhoLeaveAreLost(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(10), hybrid.WithAlgorithm(hybrid.LeakyBucket))
		warm(t, lim)
		allowN(t, lim, "k", 1)
		ctx, cancel := cancelAfter(t, 50*time.Millisecond)
		defer cancel()
		if _, err := lim.Wait(ctx, "k"); err == nil {
			t.Error("it was served")
		}
		want(t, "lost", lim.Stats().TokensLost, 1)
		want(t, "room", allowN(t, lim, "k", 0).Remaining, 8)
	})
}
