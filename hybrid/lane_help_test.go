package hybrid_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
	"github.com/resilient-go/limiter/remote"
)

// shards is a limiter on a cluster of three masters and a spare node.
type shards struct {
	*redistest.MiniCluster
	rdb    *redis.ClusterClient
	lim    *hybrid.Limiter
	events *journal
	keys   [3][]string // some keys of each master
}

const spare = 3 // the node that takes the place of a master

// onShards runs f in a bubble, with a client that knows who has which slots.
func onShards(t *testing.T, limit hybrid.Limit, f func(t *testing.T, s *shards), options ...hybrid.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newShards(t, limit, options...)
		s.learn(t)
		f(t, s)
	})
}

func newShards(t *testing.T, limit hybrid.Limit, options ...hybrid.Option) *shards {
	t.Helper()
	s := &shards{MiniCluster: redistest.BubbleCluster(t, 3, 1), events: new(journal)}
	s.rdb = s.Client(advisedCluster)
	options = append([]hybrid.Option{hybrid.WithName("n"), hybrid.WithEvents(s.events.add)}, options...)
	s.lim = startOn(t, s.rdb, limit, options...)
	return s
}

// learn finds eight keys of each master, and has the scripts known to all nodes.
func (s *shards) learn(t *testing.T) {
	t.Helper()
	s.find(t)
	for _, keys := range s.keys {
		want(t, "source", allowN(t, s.lim, keys[0], 1).Source, hybrid.SourceRedis)
	}
}

// find finds eight keys of each master.
func (s *shards) find(t *testing.T) {
	t.Helper()
	for i := 0; len(s.keys[0]) < 8 || len(s.keys[1]) < 8 || len(s.keys[2]) < 8; i++ {
		key := fmt.Sprint("key", i)
		if n := s.node(t, key); len(s.keys[n]) < 8 {
			s.keys[n] = append(s.keys[n], key)
		}
	}
}

// node is the one that has a key of the limiter, as the client believes.
func (s *shards) node(t *testing.T, key string) int {
	t.Helper()
	c, err := s.rdb.MasterForKey(t.Context(), remote.Key("n", key))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		if c.Options().Addr == s.Addr(i) {
			return i
		}
	}
	t.Fatalf("%s is at no node", key)
	return 0
}

func advisedCluster(o *redis.ClusterOptions) {
	old := *o
	*o = *hybrid.RedisOptions(o.Addrs...).Cluster()
	o.ClusterSlots, o.Dialer, o.PoolSize = old.ClusterSlots, old.Dialer, old.PoolSize
}

// lose asks for keys of a master until its breaker is open.
func (s *shards) lose(t *testing.T, node int) {
	t.Helper()
	for i := 0; s.lim.Stats().MastersDegraded == 0; i++ {
		if i == 10 {
			t.Fatal("the breaker stays closed")
		}
		allowN(t, s.lim, s.keys[node][i%8], 1)
		settle()
	}
}

// well asks for each key of some masters, which Redis or a lease must decide at once.
func (s *shards) well(t *testing.T, nodes ...int) {
	t.Helper()
	for _, n := range nodes {
		for _, key := range s.keys[n] {
			begun := time.Now()
			res := allowN(t, s.lim, key, 1)
			if !res.Allowed || res.Source != hybrid.SourceRedis && res.Source != hybrid.SourceLease {
				t.Fatalf("%s of a master that is well: %+v", key, res)
			}
			if d := time.Since(begun); d != 0 {
				t.Fatalf("%s of a master that is well waited for %v", key, d)
			}
		}
	}
}

// story tells what an operator would hear of: who was degraded and who is back.
func (s *shards) story() (text []string) {
	for _, e := range s.events.all() {
		switch e := e.(type) {
		case hybrid.Degraded:
			text = append(text, fmt.Sprintf("degraded %s %s", e.Node, e.Class))
		case hybrid.Recovered:
			text = append(text, fmt.Sprintf("recovered %s", e.Node))
		case hybrid.BreakerChanged:
		default:
			text = append(text, fmt.Sprintf("%T", e))
		}
	}
	return text
}
