package redistest_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/internal/redistest"
)

func eventually(t *testing.T, what string, f func() error) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	s := redistest.Sentinel(t)
	c := s.Client(func(o *redis.FailoverOptions) {
		o.MaxRetries = -1
		o.DialerRetries = 1
	})
	ctx := t.Context()
	if err := incr.Run(ctx, c, []string{"n"}).Err(); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Do(ctx, "WAIT", 1, 10_000).Int(); n != 1 || err != nil {
		t.Fatalf("WAIT = %d, %v: the replica has not got the data", n, err)
	}
	s.Kill()
	if err := c.Ping(ctx).Err(); err == nil {
		t.Error("the master is killed, but it answers")
	}
	s.AwaitFailover()
	eventually(t, "the client does not find the new master", func() error {
		return c.Ping(ctx).Err()
	})
	if v, err := incr.Run(ctx, c, []string{"n"}).Int(); v != 2 || err != nil {
		t.Errorf("n = %d, %v on the new master, want 2", v, err)
	}
}

func TestSentinelFreeze(t *testing.T) {
	t.Parallel()
	s := redistest.Sentinel(t)
	c := s.Client(func(o *redis.FailoverOptions) {
		o.MaxRetries = -1
		o.ReadTimeout = 200 * time.Millisecond
	})
	ctx := t.Context()
	if err := c.Ping(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	s.Freeze()
	if err := c.Ping(ctx).Err(); !isTimeout(err) {
		t.Errorf("frozen: %v, want a time-out", err)
	}
	s.AwaitFailover()
	s.Thaw()
	eventually(t, "no master accepts writes", func() error {
		return c.Set(ctx, "key", "v", 0).Err()
	})
}
