package hybrid_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// Two of three masters hang, and the client has the default options, with which it
// waits for seconds: each master has eight calls in flight at most.
func TestCallsInFlightAreBoundedForEachMaster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shards{MiniCluster: redistest.BubbleCluster(t, 3, 1), events: new(journal)}
		s.rdb = s.Client(func(*redis.ClusterOptions) {})
		s.lim = startOn(t, s.rdb, hybrid.PerSecond(100_000), hybrid.WithName("n"), hybrid.WithEvents(s.events.add))
		s.learn(t)
		before := [2]int{s.Node(0).Counts().Conns, s.Node(1).Counts().Conns}
		s.Node(0).Freeze()
		s.Node(1).Freeze()
		var crowd sync.WaitGroup
		for range 200 { // two seconds: less than the client waits
			for _, n := range []int{0, 1} {
				for _, key := range s.keys[n] {
					crowd.Go(func() { allowN(t, s.lim, key, 1) })
				}
			}
			s.well(t, 2)
			time.Sleep(10 * time.Millisecond)
		}
		crowd.Wait()
		for n, conns := range before {
			// A call has a connection of its own until the client gives it up; one was idle.
			if now := s.Node(n).Counts().Conns - conns; now < 1 || now > 8 {
				t.Errorf("%d connections were opened to node %d, want a few, and 8 at most", now, n)
			}
		}
		want(t, "masters degraded", s.lim.Stats().MastersDegraded, 2)
		s.Node(0).Thaw()
		s.Node(1).Thaw()
		time.Sleep(10 * time.Second)
		want(t, "masters degraded", s.lim.Stats().MastersDegraded, 0)
	})
}

// Keys that have no place in the table are in the lanes of their masters as well.
func TestKeysBeyondTheBoundHaveTheirMaster(t *testing.T) {
	onShards(t, hybrid.PerSecond(1000), func(t *testing.T, s *shards) {
		s.Node(0).Kill()
		s.lose(t, 0)
		for i := range 50 {
			key := fmt.Sprint("further", i)
			source := hybrid.SourceRedis
			if s.node(t, key) == 0 {
				source = hybrid.SourceDegraded
			}
			want(t, key, allowN(t, s.lim, key, 1).Source, source)
		}
		s.Move(0, spare)
		time.Sleep(time.Second)
		for i := range 50 {
			want(t, "source", allowN(t, s.lim, fmt.Sprint("further", i), 1).Source, hybrid.SourceRedis)
		}
	}, hybrid.WithMaxKeys(1))
}

// Peek and Reset go by the master of the key.
func TestLooksAndResetsGoByTheMaster(t *testing.T) {
	onShards(t, hybrid.PerSecond(1000), func(t *testing.T, s *shards) {
		s.Node(0).Kill()
		s.lose(t, 0)
		lost, other := s.keys[0][1], s.keys[1][1]
		want(t, "a look at a key of the lost master", allowN(t, s.lim, lost, 0).Source, hybrid.SourceDegraded)
		want(t, "a look at another", allowN(t, s.lim, other, 0).Source, hybrid.SourceRedis)
		if err := s.lim.Reset(t.Context(), lost); !errors.Is(err, hybrid.ErrUnavailable) {
			t.Errorf("a reset of a key of the lost master: %v", err)
		}
		if err := s.lim.Reset(t.Context(), other); err != nil {
			t.Errorf("a reset of another: %v", err)
		}
		s.Move(0, spare)
		time.Sleep(500 * time.Millisecond)
		want(t, "a look after the promotion", allowN(t, s.lim, lost, 0).Source, hybrid.SourceRedis)
	})
}

// Just after a promotion other instances may not have noticed it: the keys that were
// lost take their part for a while, the others all that there is.
func TestJustAfterAPromotionTheLostKeysTakeTheirPart(t *testing.T) {
	onShards(t, hybrid.PerSecond(100), func(t *testing.T, s *shards) {
		s.Node(0).Kill()
		s.lose(t, 0)
		time.Sleep(3 * time.Second)
		lost, other := s.keys[0][2], s.keys[1][2]
		take := func(key string, d time.Duration) (passed int) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
				if allowN(t, s.lim, key, 1).Allowed {
					passed++
				}
			}
			return passed
		}
		take(lost, time.Second) // its part is used up
		s.Move(0, spare)
		for s.lim.Stats().Degraded {
			take(lost, 10*time.Millisecond)
		}
		// A quarter of a hundred per second, and Redis has more.
		if n := take(lost, time.Second); n < 20 || n > 30 {
			t.Errorf("%d passed in the first second, want the part of 25", n)
		}
		if n := take(other, time.Second); n < 150 || n > 200 {
			t.Errorf("%d of another key passed in a second, want its burst of 100 and 100", n)
		}
		take(lost, 3*time.Second)
		if n := take(lost, 2*time.Second); n < 180 {
			t.Errorf("%d passed in two seconds, want 200: it is as ever", n)
		}
	}, hybrid.WithExpectedInstances(4))
}
