package remote_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/internal/redistest"
	"github.com/resilient-go/limiter/remote"
)

// serves fails unless a client of any kind does the whole work.
func serves(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	c := newClient(t, rdb, patience)
	for range 2 {
		for i, f := range append(many(c, 20), piped(t, rdb, patience, 20)...) {
			if o := f.wait(); o.err != nil || o.Granted[0] != 1 {
				t.Fatalf("call %d: %+v, %v", i, o.Answer, o.err)
			}
		}
	}
	m := one("key0")
	m.Needs[0].Count = 10
	if o := call(c, m); o.err != nil || o.Granted[0] != 6 || o.Tokens >= remote.Unit {
		t.Errorf("%+v, %v, want the 6 that are left", o.Answer, o.err)
	}
	levels := make(chan remote.Level, 1)
	note := func(l remote.Level, err error) {
		if err != nil {
			t.Error(err)
		}
		levels <- l
	}
	if err := c.Reset(remote.Key("test", "key0"), tenPerHour, note); err != nil {
		t.Fatal(err)
	}
	if l := <-levels; l.Tokens != 10*remote.Unit {
		t.Errorf("a reset leaves %+v", l)
	}
	if err := c.Peek(remote.Key("test", "key1"), tenPerHour, note); err != nil {
		t.Fatal(err)
	}
	if l := <-levels; l.Tokens/remote.Unit != 6 {
		t.Errorf("a peek sees %+v, want 6 tokens", l)
	}
	if err := c.Probe(one("probe")); err != nil {
		t.Error(err)
	}
}

func TestSingleServer(t *testing.T) { serves(t, redistest.Server(t).Client()) }

func TestCluster(t *testing.T) { serves(t, redistest.Cluster(t).Client()) }

func TestRing(t *testing.T) {
	a, b := redistest.Server(t), redistest.Server(t)
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": a.Addr(), "b": b.Addr()}})
	t.Cleanup(func() { _ = ring.Close() })
	serves(t, ring)
	if a.Counts().Runs == 0 || b.Counts().Runs == 0 {
		t.Error("one shard has done all the work")
	}
	a.Kill()
	b.Kill()
	c := newClient(t, ring, patience)
	eventually(t, "the ring has noticed", func() bool {
		o := call(c, one("key"))
		if o.class() != remote.Connection {
			t.Fatalf("%v, want class connection", o.err)
		}
		return ring.Len() == 0
	})
	if o := call(c, one("key")); o.class() != remote.Connection {
		t.Errorf("without shards: %v, want class connection", o.err)
	}
}

// After a failover the replica serves, which has never seen the scripts.
func TestSentinel(t *testing.T) {
	s := redistest.Sentinel(t)
	rdb := s.Client()
	serves(t, rdb)
	s.Kill()
	c := newClient(t, rdb, patience)
	if o := call(c, one("key")); o.class() != remote.Connection && o.class() != remote.Timeout {
		t.Errorf("without a master: %v, want class connection or timeout", o.err)
	}
	s.AwaitFailover()
	eventually(t, "the new master serves", func() bool { return call(c, one("key")).err == nil })
}

func TestNobodyThere(t *testing.T) {
	for name, rdb := range map[string]redis.UniversalClient{
		"cluster": redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1", "127.0.0.1:2"}}),
		"sentinel": redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: "m", SentinelAddrs: []string{"127.0.0.1:1", "127.0.0.1:2"}, DialerRetries: 1, MaxRetries: -1,
		}),
		"server": redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() { _ = rdb.Close() })
			if o := call(newClient(t, rdb, patience), one("key")); o.class() != remote.Connection {
				t.Errorf("%v, want class connection", o.err)
			}
			for _, f := range piped(t, rdb, patience, 3) {
				if o := f.wait(); o.class() != remote.Connection {
					t.Errorf("in a pipeline: %v, want class connection", o.err)
				}
			}
		})
	}
}
