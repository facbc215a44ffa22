package e2e

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
	"github.com/resilient-go/limiter/remote"
)

// sharded is a limiter on a Cluster of three masters under a steady load: a caller for
// each of some keys.
type sharded struct {
	*redistest.ShardSet
	t    *testing.T
	rdb  *redis.ClusterClient
	lim  *hybrid.Limiter
	name string
	keys [3][]string // of each master
	stop chan struct{}
	work sync.WaitGroup

	mu     sync.Mutex // guards what follows
	calls  [3][]Call
	events []told
	dials  map[string]int // by address
}

// Enough for a hiccup of the machine not to be an outage, and the keys per master.
const (
	shardTimeout = 450 * time.Millisecond
	keysEach     = 2
)

func startSharded(t *testing.T, set *redistest.ShardSet, limit hybrid.Limit) *sharded {
	t.Helper()
	return startShardedOn(t, set, limit, 0, 1, 2)
}

// startShardedOn asks for keys of these of the first masters.
func startShardedOn(t *testing.T, set *redistest.ShardSet, limit hybrid.Limit, masters ...int) *sharded {
	t.Helper()
	s := &sharded{ShardSet: set, t: t, name: t.Name(), stop: make(chan struct{}), dials: map[string]int{}}
	s.rdb = set.Client(func(o *redis.ClusterOptions) {
		*o = *remote.Options(shardTimeout, o.Addrs...).Cluster()
		o.Dialer = s.dial
	})
	lim, err := hybrid.New(s.rdb, limit, quiet, hybrid.WithName(s.name), hybrid.WithRemoteTimeout(shardTimeout),
		hybrid.WithEvents(func(e hybrid.Event) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.events = append(s.events, told{e, stamp()})
		}))
	if err != nil {
		t.Fatal(err)
	}
	s.lim = lim
	t.Cleanup(s.end)
	missing := len(masters) * keysEach
	for i := 0; missing > 0; i++ {
		key := fmt.Sprint("key", i)
		if n := s.home(key); slices.Contains(masters, n) && len(s.keys[n]) < keysEach {
			s.keys[n] = append(s.keys[n], key)
			missing--
		}
	}
	for n, keys := range s.keys {
		for _, key := range keys {
			s.work.Go(func() { s.caller(n, key) })
		}
	}
	return s
}

// dial counts what it dials.
func (s *sharded) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	s.mu.Lock()
	s.dials[addr]++
	s.mu.Unlock()
	return new(net.Dialer).DialContext(ctx, network, addr)
}

// home is the first master that has a key, -1 if it is none of them.
func (s *sharded) home(key string) int {
	s.t.Helper()
	c, err := s.rdb.MasterForKey(s.t.Context(), remote.Key(s.name, key))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range 3 {
		if c.Options().Addr == s.Addr(i) {
			return i
		}
	}
	return -1
}

func (s *sharded) caller(shard int, key string) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-s.stop:
			return
		}
		c, err := call(&shared{lim: s.lim}, key, 1)
		if err != nil {
			s.t.Errorf("Allow: %v", err)
			return
		}
		s.mu.Lock()
		s.calls[shard] = append(s.calls[shard], c)
		s.mu.Unlock()
	}
}

// rest stops the load, end the limiter as well.
func (s *sharded) rest() {
	select {
	case <-s.stop:
	default:
		close(s.stop)
	}
	s.work.Wait()
}

func (s *sharded) end() {
	s.rest()
	_ = s.lim.Close() // what a dead master does not take back is no fault here
}

// goOn waits until each shard of those has had so many more decisions that were not
// those of the outage policy.
func (s *sharded) goOn(n int, shards ...int) {
	s.t.Helper()
	from := stamp()
	for _, i := range shards {
		eventually(s.t, "a shard decides", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			got := 0
			for _, c := range s.calls[i] {
				if c.Start > from && c.Source != hybrid.SourceDegraded {
					got++
				}
			}
			return got >= n
		})
	}
}

// degraded reports whether the keys of some master are.
func (s *sharded) degraded() bool { return s.lim.Stats().MastersDegraded > 0 }

// wellBut checks that every call for another master than that one was decided by Redis
// or a lease, admitted and not held up; and that the one had one outage.
func (s *sharded) wellBut(lost int) {
	s.t.Helper()
	s.rest()
	var longest time.Duration
	for i, calls := range s.calls {
		for _, c := range calls {
			if i == lost {
				continue
			}
			longest = max(longest, time.Duration(c.End-c.Start))
			if !c.Allowed || c.Source == hybrid.SourceDegraded {
				s.t.Errorf("a call for a master that was well: %+v", c)
			}
		}
	}
	s.t.Logf("the longest call for the other masters took %v", longest)
	if longest > 5*time.Second {
		s.t.Error("that is longer than any machine takes")
	}
	var story string
	for _, e := range s.events {
		switch e := e.Event.(type) {
		case hybrid.Degraded:
			story += fmt.Sprintf("degraded %s; ", e.Node)
		case hybrid.Recovered:
			story += fmt.Sprintf("recovered %s; ", e.Node)
		case hybrid.Misconfigured:
			story += fmt.Sprintf("misconfigured %s; ", e.Class)
		default:
		}
	}
	want := ""
	if lost >= 0 {
		want = fmt.Sprintf("degraded %s; recovered %s; ", s.Addr(lost), s.Addr(lost))
		if decidedBy(s.calls[lost], hybrid.SourceDegraded) == 0 {
			s.t.Error("no key was degraded: nothing was tested")
		}
	}
	if story != want {
		s.t.Errorf("events %q, want %q", story, want)
	}
	if st := s.lim.Stats(); st.Degraded || st.Breaker != "closed" {
		s.t.Errorf("at the end: degraded %v, breaker %s", st.Degraded, st.Breaker)
	}
}
