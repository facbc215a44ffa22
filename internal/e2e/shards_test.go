package e2e

import (
	"fmt"
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
}

// Enough for a hiccup of the machine not to be an outage, and the keys per master.
const (
	shardTimeout = 450 * time.Millisecond
	keysEach     = 2
)

func startSharded(t *testing.T, set *redistest.ShardSet, limit hybrid.Limit) *sharded {
	t.Helper()
	s := &sharded{ShardSet: set, t: t, name: t.Name(), stop: make(chan struct{})}
	s.rdb = set.Client(func(o *redis.ClusterOptions) { *o = *remote.Options(shardTimeout, o.Addrs...).Cluster() })
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
	for i := 0; len(s.keys[0]) < keysEach || len(s.keys[1]) < keysEach || len(s.keys[2]) < keysEach; i++ {
		key := fmt.Sprint("key", i)
		if n := s.home(key); len(s.keys[n]) < keysEach {
			s.keys[n] = append(s.keys[n], key)
		}
	}
	for n, keys := range s.keys {
		for _, key := range keys {
			s.work.Go(func() { s.caller(n, key) })
		}
	}
	return s
}

// home is the first master that has a key.
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
	s.t.Fatalf("%s is at %s, which is no master", key, c.Options().Addr)
	return 0
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

// One Cluster serves all of these, the gentle ones first.
func TestLosingOneShardOfSeveral(t *testing.T) {
	set := redistest.Shards(t, 3)
	t.Run("slots move under load", func(t *testing.T) { slotsMove(t, set) })
	t.Run("a master is frozen", func(t *testing.T) { masterFrozen(t, set) })
	t.Run("a master dies", func(t *testing.T) { masterDies(t, set) })
}

// A slot wanders between two masters while its key is asked for: nobody is refused, no
// breaker opens, and no token is lost or made.
func slotsMove(t *testing.T, set *redistest.ShardSet) {
	limit := hybrid.PerHour(100_000)
	s := startSharded(t, set, limit)
	s.goOn(20, 0, 1, 2)
	key := s.keys[0][0]
	slot := int(s.rdb.ClusterKeySlot(t.Context(), remote.Key(s.name, key)).Val())
	moves := normally(10, 100)
	for range moves {
		s.MoveSlot(slot, 0, 2)
		s.goOn(10, 0)
		s.MoveSlot(slot, 2, 0)
		s.goOn(10, 0)
	}
	s.wellBut(-1)
	if n := s.lim.Stats().RedisCalls["moving"]; n > 0 {
		t.Errorf("%d redirects were not followed", n)
	}
	if err := s.lim.Close(); err != nil { // what is on lease goes back
		t.Fatal(err)
	}
	peeked, err := hybrid.New(s.rdb, limit, quiet, hybrid.WithName(s.name), hybrid.WithRemoteTimeout(shardTimeout))
	if err != nil {
		t.Fatal(err)
	}
	defer peeked.Close()
	res, err := peeked.Peek(t.Context(), key)
	if err != nil || res.Source != hybrid.SourceRedis {
		t.Fatalf("%+v, %v", res, err)
	}
	used := 0
	for _, c := range s.calls[0] {
		if c.Key == key {
			used++
		}
	}
	grown := int(float64(limit.Count())/limit.Period().Seconds()*span(s.calls[0]).Seconds()) + 30 // until it was peeked
	if left := limit.Burst() - res.Remaining; left > used || left < used-grown {
		t.Errorf("%d tokens are missing after %d moves, want %d, less %d that have grown", left, 2*moves, used, grown)
	}
}

func masterFrozen(t *testing.T, set *redistest.ShardSet) {
	set.Failovers(false)
	s := startSharded(t, set, hybrid.PerSecond(10_000))
	s.goOn(20, 0, 1, 2)
	s.Freeze(1)
	eventually(t, "the frozen master's keys are degraded", s.degraded)
	s.goOn(100, 0, 2)
	s.Thaw(1)
	eventually(t, "they are back", func() bool { return !s.degraded() })
	s.goOn(20, 0, 1, 2)
	s.wellBut(1)
	set.Failovers(true)
}

func masterDies(t *testing.T, set *redistest.ShardSet) {
	s := startSharded(t, set, hybrid.PerSecond(10_000))
	s.goOn(20, 0, 1, 2)
	s.Kill(0)
	eventually(t, "the dead master's keys are degraded", s.degraded)
	seen := s.AwaitPromotion(0)
	promoted := stamp() - int64(time.Since(seen))
	s.goOn(20, 0, 1, 2)
	eventually(t, "that is told", func() bool { return !s.degraded() })
	s.wellBut(0)
	for _, key := range s.keys[0] {
		for _, c := range s.calls[0] {
			if c.Key != key || c.End < promoted || c.Source == hybrid.SourceDegraded {
				continue
			}
			took := time.Duration(c.End - promoted)
			t.Logf("%s is back %v after the promotion was seen", key, took)
			if took > 5*time.Second {
				t.Errorf("%s is back after %v, want half a second on a quiet machine", key, took)
			}
			break
		}
	}
}
