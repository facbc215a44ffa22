package e2e

import (
	"context"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
	"github.com/resilient-go/limiter/remote"
)

// A replica takes the place of its master with what it knew a second before, and its
// clock is minutes off: limits go on at once, and not much more than a burst passes
// on top.
func TestPromotionWithOlderDataAndAnotherClock(t *testing.T) {
	for _, c := range []struct {
		name  string
		ahead time.Duration // of the new master's clock
	}{
		{"the same clock", 0},
		{"a clock five minutes ahead", 5 * time.Minute},
		{"a clock five minutes behind", -5 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) { promotion(t, c.ahead) })
	}
}

func promotion(t *testing.T, ahead time.Duration) {
	old, heir := redistest.Server(t, "repl-diskless-sync-delay 0"), redistest.Server(t)
	host, port, err := net.SplitHostPort(old.DirectAddr())
	if err != nil {
		t.Fatal(err)
	}
	on := adminOf(t, heir)
	run := func(args ...any) any {
		t.Helper()
		v, err := on.Do(t.Context(), args...).Result()
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return v
	}
	run("REPLICAOF", host, port)
	eventually(t, "the replica is in sync", func() bool {
		return strings.Contains(run("INFO", "replication").(string), "master_link_status:up")
	})

	var master atomic.Value // where clients find it
	master.Store(old.DirectAddr())
	limit := hybrid.PerSecond(perSecond).WithBurst(burstSize)
	f := startFleet(t, 1, time.Second/(2*perSecond), func() redis.UniversalClient {
		o := remote.Options(shardTimeout, "127.0.0.1:1").Simple() // a name that the dialer resolves
		o.Dialer = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, master.Load().(string))
		}
		c := redis.NewClient(o)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}, limit, hybrid.WithName("n"), hybrid.WithRemoteTimeout(shardTimeout))
	f.warm(perSecond) // the burst is used up
	name := remote.Key("n", "key")
	eventually(t, "the replica knows the key", func() bool { return run("EXISTS", name).(int64) == 1 })
	run("REPLICAOF", "NO", "ONE") // what comes now it does not hear of
	f.warm(perSecond)
	run("PERSIST", name)
	shift(t, on, name, -ahead)

	failed := stamp()
	master.Store(heir.DirectAddr())
	old.Kill()
	in := f.instances[0]
	decided := func(since int64, n int) func() bool {
		return func() bool {
			return in.since(since, func(c Call) bool { return c.Allowed && c.Source != hybrid.SourceDegraded }) >= n
		}
	}
	eventually(t, "the limit goes on", decided(failed, 2*perSecond))
	f.rest()
	if in.Stats().Degraded {
		t.Error("it stays degraded")
	}
	// A burst for what was not replicated, one for the clock, and one lease each.
	lease := float64(perSecond) * time.Second.Seconds()
	if x, most := excess(in.calls, limit, 1), 2*(burstSize+lease); x > most {
		t.Errorf("some window admitted %.0f more than the bucket, want %.0f at most", x, most)
	} else {
		t.Logf("the worst window admitted %.0f more than the bucket, of %.0f that may be", max(0, x), most)
	}
	last, longest := failed, time.Duration(0)
	for _, c := range in.calls {
		if c.Start > failed && c.Allowed {
			longest = max(longest, time.Duration(c.End-last))
			last = c.End
		}
	}
	t.Logf("the longest time without an admission was %v", longest)
	if longest > 5*time.Second {
		t.Error("that is a gap")
	}
}

// shift moves each instant in a hash: as if the server's clock had been another one.
func shift(t *testing.T, c *redis.Client, name string, by time.Duration) {
	t.Helper()
	fields, err := c.HGetAll(t.Context(), name).Result()
	if err != nil || len(fields) == 0 {
		t.Fatal(fields, err)
	}
	micros := regexp.MustCompile(`\b[0-9]{16}\b`)
	moved := 0
	for field, value := range fields {
		shifted := micros.ReplaceAllStringFunc(value, func(at string) string {
			n, err := strconv.ParseInt(at, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			moved++
			return strconv.FormatInt(n+by.Microseconds(), 10)
		})
		if err := c.HSet(t.Context(), name, field, shifted).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if moved == 0 {
		t.Fatalf("no instant in %v: nothing was tested", fields)
	}
}
