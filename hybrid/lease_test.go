package hybrid_test

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// every asks for one token of "k" n times, pausing in between.
func every(t *testing.T, lim *hybrid.Limiter, n int, pause time.Duration, see func(hybrid.Result)) {
	t.Helper()
	for range n {
		see(allow(t, lim))
		time.Sleep(pause)
		synctest.Wait()
	}
}

func TestHotKeyHardlyAsksRedis(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(10_000))
		leased := 0
		every(t, lim, 5000, time.Millisecond, func(res hybrid.Result) {
			if !res.Allowed {
				t.Fatalf("%+v", res)
			}
			if res.Source == hybrid.SourceLease {
				leased++
			}
		})
		// A lump lasts 200 ms and is renewed with a fifth left: 31 calls in 5 s, and
		// those until the demand is known.
		if calls := r.Counts().Runs; calls > 60 {
			t.Errorf("%d calls for 5000 decisions", calls)
		}
		if leased < 4950 {
			t.Errorf("%d of 5000 from leases", leased)
		}
	})
}

func TestSlowKeyStretchesItsLease(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerMinute(1200))
		every(t, lim, 400, 100*time.Millisecond, func(res hybrid.Result) {
			if !res.Allowed {
				t.Fatalf("%+v", res)
			}
		})
		// 10 per second would be 2 per horizon; a lump covers about 8 all the same.
		if calls := r.Counts().Runs; calls > 90 {
			t.Errorf("%d calls for 400 decisions", calls)
		}
	})
}

func TestLeaseIsRenewedBeforeItRunsDry(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(10_000))
		warm(t, lim)
		r.Delay(5 * time.Millisecond)
		every(t, lim, 1000, time.Millisecond, func(hybrid.Result) {})
		begun := time.Now()
		calls := r.Counts().Runs
		every(t, lim, 2000, time.Millisecond, func(res hybrid.Result) {
			if res.Source != hybrid.SourceLease || !res.Allowed {
				t.Fatalf("%+v", res)
			}
		})
		want(t, "time spent on 2000 decisions", time.Since(begun), 2*time.Second)
		if n := r.Counts().Runs - calls; n < 5 || n > 30 {
			t.Errorf("%d calls meanwhile", n)
		}
	})
}

func TestNearTheEndEveryTokenGoesToARequest(t *testing.T) {
	for _, burst := range []int{5, 8, 40, 100, 1000} {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			limit := hybrid.PerHour(1).WithBurst(burst)
			lims := []*hybrid.Limiter{start(t, r, limit), start(t, r, limit), start(t, r, limit)}
			admitted := 0
			for refused := 0; refused < 3*len(lims); {
				refused = 0
				for range 3 {
					for _, lim := range lims {
						if allow(t, lim).Allowed {
							admitted++
						} else {
							refused++
						}
					}
					time.Sleep(time.Millisecond)
				}
			}
			want(t, "admitted", admitted, burst)
		})
	}
}

func TestTenCallersOfTwoInstancesUnderFive(t *testing.T) {
	for range runs(5, 200) {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			a, b := start(t, r, hybrid.PerMinute(5)), start(t, r, hybrid.PerMinute(5))
			var all sync.WaitGroup
			var admitted atomic.Int64
			for range 5 {
				for _, lim := range []*hybrid.Limiter{a, b} {
					all.Go(func() {
						if allow(t, lim).Allowed {
							admitted.Add(1)
						}
					})
				}
			}
			all.Wait()
			want(t, "admitted", admitted.Load(), 5)
		})
	}
}

func TestIdleLeaseIsReturned(t *testing.T) {
	tests := []struct {
		pause, rest time.Duration
		calls       int
	}{
		{time.Millisecond, 100 * time.Millisecond, 1000},
		{100 * time.Millisecond, 400 * time.Millisecond, 50}, // its horizon is stretched to 800 ms
	}
	for _, tt := range tests {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			limit := hybrid.PerHour(1).WithBurst(10_000)
			lim, other := start(t, r, limit), start(t, r, limit)
			every(t, lim, tt.calls, tt.pause, func(hybrid.Result) {})
			left := 10_000 - tt.calls
			if seen := allowN(t, other, "k", 0).Remaining; seen >= left-4 {
				t.Errorf("another instance sees %d of %d, want a lease to be out", seen, left)
			}
			// It looks every half horizon, and notices the last use by the next look.
			time.Sleep(tt.rest - tt.pause + 200*time.Millisecond)
			settle()
			want(t, "what another instance sees", allowN(t, other, "k", 0).Remaining, left)
			s := lim.Stats()
			want(t, "returned", s.TokensReturned, s.TokensGranted-s.Allowed[hybrid.SourceLease])
			want(t, "next decision", allow(t, lim).Source, hybrid.SourceRedis)
		})
	}
}

func TestLeaseInUseIsNotReturned(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerHour(1).WithBurst(10_000))
		every(t, lim, 3000, time.Millisecond, func(hybrid.Result) {})
		want(t, "returned", lim.Stats().TokensReturned, 0)
	})
}

func TestLeaseOfTheDeadExpires(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		limit := hybrid.PerSecond(10_000)
		rdb := r.Client(advised)
		gone, other := startOn(t, rdb, limit), start(t, r, limit)
		var last time.Time
		for calls := 0; time.Since(last) < 20*time.Millisecond || calls < 20; {
			before := r.Counts().Runs
			allow(t, gone)
			settle()
			if r.Counts().Runs > before {
				last = time.Now()
				calls++
			}
			time.Sleep(time.Millisecond)
		}
		if err := rdb.Close(); err != nil {
			t.Fatal(err)
		}
		// x is when the last lease ends: a second after the last message, or later if
		// an earlier one was longer.
		us, err := strconv.ParseInt(r.Miniredis().HGet("rl:{10000/s:k}", "x"), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		end := time.UnixMicro(us)
		if ttl := end.Sub(last); ttl < time.Second || ttl > 25*time.Second {
			t.Errorf("a lease of %v", ttl)
		}
		time.Sleep(time.Until(end.Add(-time.Microsecond)))
		before := allowN(t, other, "k", 0).Remaining
		if before > 10_000-100 {
			t.Fatalf("%d tokens while a lease is out", before)
		}
		want(t, "more than that", allowN(t, other, "k", before+1).Allowed, false)
		// From its end on the root refills what was out, at its rate.
		out := time.Duration(10_000 - before)
		time.Sleep(out * 100 * time.Microsecond)
		want(t, "almost all", allowN(t, other, "k", 0).Remaining, 9_999)
		time.Sleep(time.Microsecond)
		want(t, "all", allowN(t, other, "k", 0).Remaining, 10_000)
	})
}

func TestLeaseIsSpentForNineTenthsOfItsTime(t *testing.T) {
	for _, late := range []bool{false, true} {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			lim := start(t, r, hybrid.PerSecond(10_000), hybrid.WithOutagePolicy(hybrid.FailClosed))
			var last time.Time
			for calls := 0; time.Since(last) < 20*time.Millisecond || calls < 20; {
				before := r.Counts().Runs
				allow(t, lim)
				settle()
				if r.Counts().Runs > before {
					last = time.Now()
					calls++
				}
				time.Sleep(time.Millisecond)
			}
			r.Kill()
			for range 5 {
				allowN(t, lim, "other", 1)
			}
			want(t, "breaker", lim.Stats().Breaker, "open")
			end := last.Add(900 * time.Millisecond)
			if !late {
				time.Sleep(time.Until(end) - 1)
				want(t, "in time", allow(t, lim).Source, hybrid.SourceLease)
			}
			time.Sleep(time.Until(end))
			want(t, "when it has ended", allow(t, lim).Source, hybrid.SourceDegraded)
			time.Sleep(time.Second)
			s := lim.Stats()
			want(t, "expired", s.TokensExpired, s.TokensGranted-s.Allowed[hybrid.SourceLease])
			if s.TokensExpired < 50 {
				t.Errorf("only %d tokens expired", s.TokensExpired)
			}
		})
	}
}
