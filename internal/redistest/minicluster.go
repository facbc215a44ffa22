package redistest

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// MiniCluster is what a client takes for a Redis Cluster: a few [Mini] in a bubble
// that know nothing of each other. The client is told who has which slots; no server
// checks, so nothing is redirected unless [Proxy.FailWith] makes it so.
type MiniCluster struct {
	t     testing.TB
	nodes []*Mini

	mu    sync.Mutex
	parts []int // the node that has each part of the slots
}

// BubbleCluster returns n masters with equal parts of the slots, and the given number
// of further nodes, which have none. It is for a testing/synctest bubble, see [Bubble].
func BubbleCluster(t testing.TB, n, further int) *MiniCluster {
	t.Helper()
	keepTimersApart(t)
	c := &MiniCluster{t: t}
	for i := range n + further {
		c.nodes = append(c.nodes, newMini(t, true))
		if i < n {
			c.parts = append(c.parts, i)
		}
	}
	return c
}

// Node returns a node, counted from 0.
func (c *MiniCluster) Node(i int) *Mini { return c.nodes[i] }

// Addr is the address under which clients know a node.
func (c *MiniCluster) Addr(i int) string { return fmt.Sprintf("10.0.0.%d:6379", i) }

// Move gives all slots of a node to another one, as a failover does. Clients learn of
// it when they look.
func (c *MiniCluster) Move(from, to int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, node := range c.parts {
		if node == from {
			c.parts[i] = to
		}
	}
}

// Client returns a client of the cluster. Its options are the defaults of go-redis,
// apart from the addresses, the slots and the dialer, and what opts change. The client
// is closed when the test ends.
func (c *MiniCluster) Client(opts ...func(*redis.ClusterOptions)) *redis.ClusterClient {
	o := &redis.ClusterOptions{
		Addrs:        []string{c.Addr(0)},
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) { return c.slots(), nil },
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			for i, n := range c.nodes {
				if addr == c.Addr(i) {
					return n.Dial(ctx, network, addr)
				}
			}
			return nil, fmt.Errorf("redistest: no node has the address %s", addr)
		},
		PoolSize: 128, // see Bubble
	}
	for _, opt := range opts {
		opt(o)
	}
	client := redis.NewClusterClient(o)
	c.t.Cleanup(func() { client.Close() })
	return client
}

func (c *MiniCluster) slots() (slots []redis.ClusterSlot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	const all = 16384
	for i, node := range c.parts {
		slots = append(slots, redis.ClusterSlot{
			Start: i * all / len(c.parts), End: (i+1)*all/len(c.parts) - 1,
			Nodes: []redis.ClusterNode{{Addr: c.Addr(node)}},
		})
	}
	return slots
}
