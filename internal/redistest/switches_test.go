package redistest_test

import (
	"errors"
	"io"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/internal/redistest"
)

// patient is for commands that must succeed, on a machine however busy.
func patient(o *redis.Options) {
	o.MaxRetries = -1
	o.DialerRetries = 1
	o.ReadTimeout = 10 * time.Second
}

func TestSwitches(t *testing.T) {
	t.Run("Bubble", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := redistest.Bubble(t)
			testSwitches(t, r, r.Client(patient), r.Client(plain))
		})
	})
	t.Run("MiniTCP", func(t *testing.T) {
		t.Parallel()
		r := redistest.MiniTCP(t)
		testSwitches(t, r, r.Client(patient), r.Client(plain))
	})
	t.Run("Server", func(t *testing.T) {
		t.Parallel()
		r := redistest.Server(t)
		testSwitches(t, r, r.Client(patient), r.Client(plain))
	})
	t.Run("Cluster", func(t *testing.T) {
		t.Parallel()
		r := redistest.Cluster(t)
		cluster := func(opt func(*redis.Options)) func(*redis.ClusterOptions) {
			return func(o *redis.ClusterOptions) {
				var one redis.Options
				opt(&one)
				o.MaxRetries = one.MaxRetries
				o.DialerRetries = one.DialerRetries
				o.ReadTimeout = one.ReadTimeout
				o.DialTimeout = one.DialTimeout
				o.MaxRedirects = -1
			}
		}
		testSwitches(t, r, r.Client(cluster(patient)), r.Client(cluster(plain)))
	})
}

// testSwitches runs all switches on a server of any kind. Client c waits as
// long as it takes, and client hasty has little patience.
func testSwitches(t *testing.T, r redistest.Switches, c, hasty redis.UniversalClient) {
	t.Helper()
	ctx := t.Context()
	key := []string{"n"}
	fatal := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	value := func(want string) {
		t.Helper()
		if v, err := c.Get(ctx, "n").Result(); v != want {
			t.Errorf("n = %q, %v, want %q", v, err, want)
		}
	}
	last := r.Counts()
	// counted checks the counts of the scripts since the last time.
	counted := func(what string, want redistest.Counts) {
		t.Helper()
		now := r.Counts()
		got := now.Sub(last)
		last = now
		got.Dials, got.Conns = 0, 0
		if got != want {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}

	fatal("first run", incr.Run(ctx, c, key).Err())
	counted("first run", redistest.Counts{EvalSHA: 1, NoScript: 1, Eval: 1, Runs: 1})
	if got := r.Counts(); got.Dials == 0 || got.Conns == 0 {
		t.Errorf("connected, but %+v", got)
	}

	r.DropReplies(1)
	if err := incr.EvalSha(ctx, c, key).Err(); !errors.Is(err, io.EOF) {
		t.Errorf("reply lost: %v, want EOF", err)
	}
	fatal("next reply", incr.EvalSha(ctx, c, key).Err())
	counted("reply lost", redistest.Counts{EvalSHA: 2, Runs: 2})
	value("3")

	r.FailWith("LOADING Redis is loading the dataset in memory")
	for range 2 {
		if err := incr.EvalSha(ctx, c, key).Err(); !redis.IsLoadingError(err) {
			t.Errorf("FailWith: %v, want LOADING", err)
		}
	}
	value("3")
	r.FailNext(1, "READONLY You can't write against a read only replica.")
	if err := incr.EvalSha(ctx, c, key).Err(); !redis.IsReadOnlyError(err) {
		t.Errorf("FailNext: %v, want READONLY", err)
	}
	if err := incr.Eval(ctx, c, key).Err(); !redis.IsLoadingError(err) {
		t.Errorf("after FailNext: %v, want LOADING", err)
	}
	r.Heal()
	fatal("healed", incr.EvalSha(ctx, c, key).Err())
	counted("errors", redistest.Counts{EvalSHA: 4, Eval: 1, Runs: 1})

	r.ScriptFlush()
	if err := incr.EvalSha(ctx, c, key).Err(); !redis.HasErrorPrefix(err, "NOSCRIPT") {
		t.Errorf("ScriptFlush: %v, want NOSCRIPT", err)
	}
	fatal("load", incr.Load(ctx, c).Err())
	fatal("loaded", incr.EvalSha(ctx, c, key).Err())
	counted("ScriptFlush", redistest.Counts{EvalSHA: 2, NoScript: 1, Runs: 1})
	value("5")

	r.Delay(20 * time.Millisecond)
	if d := took(func() { fatal("delayed", c.Ping(ctx).Err()) }); d < 20*time.Millisecond {
		t.Errorf("delayed by 20ms, PING took %v", d)
	}
	r.Heal()

	r.Partition()
	if err := hasty.Ping(ctx).Err(); !isTimeout(err) {
		t.Errorf("Partition: %v, want a time-out", err)
	}
	r.Heal()
	fatal("healed", c.Ping(ctx).Err())

	r.Freeze()
	r.Freeze() // of a frozen server does nothing
	if err := incr.EvalSha(ctx, hasty, key).Err(); !isTimeout(err) {
		t.Errorf("Freeze: %v, want a time-out", err)
	}
	r.Thaw()
	fatal("thawed", c.Ping(ctx).Err())

	r.Kill()
	if err := c.Ping(ctx).Err(); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("Kill: %v, want connection refused", err)
	}
	r.RestartWithData()
	value("5")
	if err := incr.EvalSha(ctx, c, key).Err(); !redis.HasErrorPrefix(err, "NOSCRIPT") {
		t.Errorf("restarted: %v, want NOSCRIPT", err)
	}

	r.Freeze()
	r.RestartWithData() // of a frozen server
	value("5")
	r.RestartEmpty() // of a running server
	if err := c.Get(ctx, "n").Err(); !errors.Is(err, redis.Nil) {
		t.Errorf("restarted empty: %v, want redis.Nil", err)
	}
	r.Kill()
	r.RestartEmpty()
	fatal("after all this", incr.Run(ctx, c, key).Err())
	value("1")

	r.Freeze() // and the test ends
}
