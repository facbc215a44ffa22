package redistest

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// RedisCluster is a Redis Cluster of one redis-server process, with switches.
// It announces the address of its proxy, so that clients stay with it.
type RedisCluster struct {
	*Redis
}

// Cluster starts a Redis Cluster of one node, which has all 16384 slots. The
// lines of conf are as for [Server]. A node takes two seconds after each start
// until it serves, as Redis prescribes.
func Cluster(t testing.TB, conf ...string) *RedisCluster {
	t.Helper()
	r := newRedis(t, conf)
	_, port, err := net.SplitHostPort(r.Addr())
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	r.config = func() []string {
		bus, err := freePort()
		if err != nil {
			t.Fatalf("redistest: no free port: %v", err)
		}
		return []string{
			"cluster-enabled yes",
			"cluster-announce-ip 127.0.0.1",
			"cluster-announce-port " + port,
			fmt.Sprintf("cluster-port %d", bus),
		}
	}
	r.ready = func() error { return assignSlots(r.proc) }
	r.launch()
	return &RedisCluster{Redis: r}
}

// assignSlots gives all slots to the node, unless it still has them from
// before a restart, and waits until it serves them.
func assignSlots(p *process) error {
	info, err := p.do("CLUSTER", "INFO")
	if err != nil {
		return err
	}
	if strings.Contains(info, "cluster_slots_assigned:0\r\n") {
		if _, err := p.do("CLUSTER", "ADDSLOTSRANGE", "0", "16383"); err != nil {
			return err
		}
	}
	return poll(startLimit, func() error {
		return p.has("cluster_state:ok\r\n", "CLUSTER", "INFO")
	})
}

// Client returns a client of the cluster. Its options are the defaults of
// go-redis, apart from the addresses and the dialer, and what opts change. The
// client is closed when the test ends.
func (c *RedisCluster) Client(opts ...func(*redis.ClusterOptions)) *redis.ClusterClient {
	o := &redis.ClusterOptions{Addrs: []string{c.Addr()}, Dialer: c.Dial}
	for _, opt := range opts {
		opt(o)
	}
	client := redis.NewClusterClient(o)
	c.t.Cleanup(func() { client.Close() })
	return client
}
