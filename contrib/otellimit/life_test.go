package otellimit_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// TestThroughAnOutage: counters never get smaller, distributions are consistent,
// and no user's key leaves the process.
func TestThroughAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, mini *redistest.Mini) {
		lim := start(t, mini, hybrid.PerSecond(100), hybrid.WithName("api"), hybrid.WithMaxKeys(8))
		r := newReader(t)
		register(t, r, lim)
		last := map[string]float64{}
		check := func() {
			t.Helper()
			values, counters := r.points(t)
			for name, v := range values {
				if strings.Contains(name, "secret") {
					t.Fatalf("a key is in %s", name)
				}
				if v < 0 {
					t.Errorf("%s = %v", name, v)
				}
			}
			for name, v := range last {
				if counters[name] < v {
					t.Errorf("%s went from %v to %v", name, v, counters[name])
				}
			}
			last = counters
			consistent(t, lim, values)
		}
		step := func(n int) {
			t.Helper()
			for i := range n {
				ask(t, lim, "secret", 2, time.Millisecond)
				ask(t, lim, fmt.Sprint("secret", i%20), 1, 0)
				if i%10 == 0 {
					check()
				}
			}
		}
		step(100)
		mini.Kill()
		step(100)
		values, _ := r.points(t)
		want(t, values, "degraded{limiter=api}", 1)
		want(t, values, "breaker.state{limiter=api,state=open}", 1)
		want(t, values, "breaker.state{limiter=api,state=closed}", 0)
		mini.RestartEmpty()
		for lim.Stats().Degraded {
			time.Sleep(10 * time.Millisecond)
			check()
		}
		step(100)
		values, _ = r.points(t)
		want(t, values, "degraded{limiter=api}", 0)
		want(t, values, "breaker.state{limiter=api,state=closed}", 1)
		want(t, values, "keys{limiter=api}", float64(lim.Stats().Keys))
		for _, name := range []string{
			"degraded.time{limiter=api}", "evictions{limiter=api}",
			"redis.calls{class=connection,limiter=api,operation=acquire}",
			"decisions{limiter=api,outcome=allowed,source=lease}",
			"decisions{limiter=api,outcome=allowed,source=degraded}",
		} {
			if values[name] == 0 {
				t.Errorf("%s = 0: nothing was tried", name)
			}
		}
	})
}

// consistent compares the distributions with the counters beside them.
func consistent(t *testing.T, lim *hybrid.Limiter, values map[string]float64) {
	t.Helper()
	var calls float64
	for name, v := range values {
		if strings.HasPrefix(name, "redis.calls{") && strings.HasSuffix(name, "operation=acquire}") {
			calls += v
		}
	}
	want(t, values, "redis.calls.buckets{le=+Inf,limiter=api,operation=acquire}", calls)
	below := 0.0
	for _, le := range lim.Stats().RedisSeconds["acquire"].Bounds {
		name := fmt.Sprintf("redis.calls.buckets{le=%v,limiter=api,operation=acquire}", le)
		v, ok := values[name]
		if !ok || v < below || v > calls {
			t.Errorf("%s = %v, %v: after %v, of %v", name, v, ok, below, calls)
		}
		below = v
	}
}

func want(t *testing.T, values map[string]float64, name string, wanted float64) {
	t.Helper()
	if v, ok := values[name]; !ok || v != wanted {
		t.Errorf("%s = %v, %v, want %v", name, v, ok, wanted)
	}
}

func TestClosedLimiterKeepsItsCounters(t *testing.T) {
	bubble(t, func(t *testing.T, mini *redistest.Mini) {
		lim := start(t, mini, hybrid.PerMinute(5), hybrid.WithName("api"))
		r := newReader(t)
		unregister := register(t, r, lim)
		ask(t, lim, "k", 3, 0)
		synctest.Wait()
		if err := lim.Close(); err != nil {
			t.Fatal(err)
		}
		values, _ := r.points(t)
		want(t, values, "decisions{limiter=api,outcome=allowed,source=redis}", 3)
		want(t, values, "waiting{limiter=api}", 0)
		if err := unregister(); err != nil {
			t.Fatal(err)
		}
		if values, _ := r.points(t); len(values) != 0 {
			t.Errorf("%d points are left", len(values))
		}
	})
}
