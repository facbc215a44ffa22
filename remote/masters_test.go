package remote_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/internal/redistest"
	"github.com/resilient-go/limiter/remote"
)

func TestOtherClientsHaveNoMasters(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{})
	defer rdb.Close()
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "10.0.0.1:6379"}})
	defer func() { _ = ring.Close() }()
	for _, c := range []redis.UniversalClient{rdb, ring} {
		if remote.NewMasters(c) != nil {
			t.Errorf("%T has masters", c)
		}
	}
}

// A client that has not found its cluster is asked: nothing is dialled, and nobody waits.
func TestMastersAreUnknownWithoutIO(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int32
		rdb := redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: []string{"10.0.0.1:6379", "10.0.0.2:6379"},
			Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
				dials.Add(1)
				<-ctx.Done()
				return nil, ctx.Err()
			},
		})
		defer rdb.Close()
		m := remote.NewMasters(rdb)
		begun := time.Now()
		for range 100 {
			if got := m.Of("key"); got != "" {
				t.Fatalf("the master is %s", got)
			}
		}
		if took, n := time.Since(begun), dials.Load(); took != 0 || n != 0 {
			t.Errorf("%v and %d dials, want none", took, n)
		}
	})
}

// The client looks again when it is told to, but not more often than it may.
func TestMastersAreLookedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int32
		var addr atomic.Value
		addr.Store("10.0.0.1:6379")
		rdb := redis.NewClusterClient(&redis.ClusterOptions{ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			looks.Add(1)
			return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: addr.Load().(string)}}}}, nil
		}})
		defer rdb.Close()
		m := remote.NewMasters(rdb)
		wantOf := func(want string) {
			t.Helper()
			if got := m.Of("key"); got != want {
				t.Errorf("the master is %q, want %s", got, want)
			}
		}
		wantOf("10.0.0.1:6379")
		addr.Store("10.0.0.2:6379")
		wantOf("10.0.0.1:6379") // it does not know
		m.Reload()
		synctest.Wait()
		wantOf("10.0.0.2:6379")

		before := looks.Load()
		for range 1000 { // ten seconds
			m.Reload()
			time.Sleep(10 * time.Millisecond)
		}
		if n := looks.Load() - before; n < 20 || n > 25 {
			t.Errorf("it looked %d times in ten seconds, want each 400ms at most", n)
		}
		time.Sleep(time.Second) // its own goroutine rests after a look
	})
}

// On a real cluster the client and the server agree.
func TestMastersOfACluster(t *testing.T) {
	s := redistest.Cluster(t)
	rdb := s.Client()
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if got := remote.NewMasters(rdb).Of(remote.Key("name", "key")); got != s.Addr() {
		t.Errorf("the master is %q, want %s", got, s.Addr())
	}
}
