package hybrid_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
	"github.com/resilient-go/limiter/remote"
)

// told fails the test unless the events are these.
func (s *shards) told(t *testing.T, events ...string) {
	t.Helper()
	if got := s.story(); !slices.Equal(got, events) {
		t.Errorf("events %q, want %q", got, events)
	}
}

func TestLosingAMasterDegradesItsKeysOnly(t *testing.T) {
	onShards(t, hybrid.PerSecond(1000), func(t *testing.T, s *shards) {
		lost := s.Addr(0)
		s.Node(0).Kill()
		s.lose(t, 0)
		before := s.lim.Stats()
		want(t, "masters degraded", before.MastersDegraded, 1)
		want(t, "degraded", before.Degraded, true)
		for range 50 { // five seconds
			for _, key := range s.keys[0] {
				want(t, "source", allowN(t, s.lim, key, 1).Source, hybrid.SourceDegraded)
			}
			s.well(t, 1, 2)
			time.Sleep(100 * time.Millisecond)
		}
		s.told(t, "degraded "+lost+" connection")
		s.Node(0).RestartWithData()
		time.Sleep(time.Second)
		s.well(t, 0, 1, 2)
		s.told(t, "degraded "+lost+" connection", "recovered "+lost)

		after := s.lim.Stats()
		want(t, "degraded", after.Degraded, false)
		want(t, "masters degraded", after.MastersDegraded, 0)
		want(t, "breaker", after.Breaker, "closed")
		for _, e := range s.events.all() {
			if r, ok := e.(hybrid.Recovered); ok {
				// The request that opened the breaker was decided in the outage as well.
				want(t, "allowed in the outage", r.Allowed, after.Allowed[hybrid.SourceDegraded]-before.Allowed[hybrid.SourceDegraded]+1)
				want(t, "duration", r.Duration, after.DegradedFor)
			}
		}
	})
}

// Two masters are lost at overlapping times: each outage is told once, with its own
// time and counts, and they add up to those of Stats.
func TestOutagesOfMastersAddUp(t *testing.T) {
	onShards(t, hybrid.PerSecond(20), func(t *testing.T, s *shards) {
		ask := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
				for _, keys := range s.keys {
					allowN(t, s.lim, keys[0], 1)
				}
			}
		}
		s.Node(0).FailWith("NOAUTH Authentication required.") // opens with the first call
		ask(2 * time.Second)
		s.Node(1).FailWith("NOAUTH Authentication required.")
		ask(2 * time.Second)
		want(t, "masters degraded", s.lim.Stats().MastersDegraded, 2)
		s.Node(0).Heal()
		ask(2 * time.Second)
		s.Node(1).Heal()
		ask(2 * time.Second)

		stats := s.lim.Stats()
		var total time.Duration
		var allowed, refused uint64
		for _, e := range s.events.all() {
			if r, ok := e.(hybrid.Recovered); ok {
				total += r.Duration
				allowed += r.Allowed
				refused += r.Refused
			}
		}
		want(t, "time degraded", stats.DegradedFor, total)
		// The request that opens a breaker is decided after that.
		want(t, "allowed", stats.Allowed[hybrid.SourceDegraded], allowed)
		want(t, "refused", stats.Refused[hybrid.SourceDegraded], refused)
		if total < 7*time.Second || allowed < 40 || refused < 40 {
			t.Errorf("%v, %d allowed and %d refused: nothing was tested", total, allowed, refused)
		}
		a, b := s.Addr(0), s.Addr(1)
		s.told(t, "hybrid.Misconfigured", "degraded "+a+" forbidden", "degraded "+b+" forbidden", "recovered "+a, "recovered "+b)
	}, hybrid.WithExpectedInstances(2))
}

// A replica takes the place of a master: however the probes fall, its keys are back
// half a second later at the latest.
func TestKeysAreBackSoonAfterAPromotion(t *testing.T) {
	worst := time.Duration(0)
	for i := range runs(20, 500) {
		onShards(t, hybrid.PerSecond(1000), func(t *testing.T, s *shards) {
			s.Node(0).Kill()
			s.lose(t, 0)
			time.Sleep(3*time.Second + time.Duration(i)*97*time.Millisecond)
			want(t, "source", allowN(t, s.lim, s.keys[0][0], 1).Source, hybrid.SourceDegraded)
			s.Move(0, spare)
			begun := time.Now()
			for _, key := range s.keys[0] {
				for allowN(t, s.lim, key, 1).Source == hybrid.SourceDegraded {
					if time.Since(begun) > 5*time.Second {
						t.Fatal("the key stays degraded")
					}
					time.Sleep(time.Millisecond)
				}
			}
			worst = max(worst, time.Since(begun))
			time.Sleep(50 * time.Millisecond) // the breaker looks at times
			want(t, "masters degraded", s.lim.Stats().MastersDegraded, 0)
			s.told(t, "degraded "+s.Addr(0)+" connection", "recovered "+s.Addr(0))
		})
	}
	t.Logf("back after %v at most", worst)
	if worst > 500*time.Millisecond {
		t.Errorf("the keys were back after %v, want 500ms at most", worst)
	}
}

// Those who wait for a key of a lost master are served when another takes its place.
func TestWaitersAreServedAfterAPromotion(t *testing.T) {
	onShards(t, hybrid.PerSecond(1000), func(t *testing.T, s *shards) {
		s.Node(0).Kill()
		s.lose(t, 0)
		done := make(chan time.Time)
		go func() {
			res, err := s.lim.Wait(t.Context(), s.keys[0][7])
			if err != nil || res.Source != hybrid.SourceRedis {
				t.Errorf("%+v, %v, want to be served by Redis", res, err)
			}
			done <- time.Now()
		}()
		time.Sleep(2 * time.Second)
		s.Move(0, spare)
		promoted := time.Now()
		if d := (<-done).Sub(promoted); d > 500*time.Millisecond {
			t.Errorf("served after %v, want 500ms at most", d)
		}
	}, hybrid.WithOutagePolicy(hybrid.FailClosed))
}

// A frozen master keeps the calls for its own keys, eight at most, and nobody else's.
func TestAFrozenMasterHoldsNobodyElseUp(t *testing.T) {
	onShards(t, hybrid.PerSecond(100_000), func(t *testing.T, s *shards) {
		before := s.Node(0).Counts()
		s.Node(0).Freeze()
		var crowd sync.WaitGroup
		for i := range 500 {
			crowd.Go(func() { allowN(t, s.lim, fmt.Sprint(s.keys[0][0], "-", i), 1) })
		}
		for range 300 { // three seconds
			s.well(t, 1, 2)
			for _, key := range s.keys[0] {
				crowd.Go(func() { allowN(t, s.lim, key, 1) })
			}
			time.Sleep(10 * time.Millisecond)
		}
		crowd.Wait()
		s.told(t, "degraded "+s.Addr(0)+" timeout")
		n := s.Node(0).Counts().Sub(before)
		if n.Dials > 20 {
			t.Errorf("%d dials in three seconds", n.Dials)
		}
		s.Node(0).Thaw()
	})
}

// The pace of dials to a dead master, probes and looks for its heir included.
func TestADeadMasterIsDialledRarely(t *testing.T) {
	onShards(t, hybrid.PerSecond(1000), func(t *testing.T, s *shards) {
		s.Node(0).Kill()
		s.lose(t, 0)
		before := s.Node(0).Counts()
		for range 1000 {
			for _, key := range s.keys[0] {
				allowN(t, s.lim, key, 1)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if n := s.Node(0).Counts().Sub(before).Dials; n < 5 || n > 40 {
			t.Errorf("%d dials in ten seconds, want probes and 40 at most", n)
		}
	})
}

// A slot moves: the old node says MOVED, the call goes on to the new one, and from then
// on the key belongs to it.
func TestAMovedKeyGoesWithItsNewMaster(t *testing.T) {
	onShards(t, hybrid.PerSecond(1000), func(t *testing.T, s *shards) {
		s.well(t, 0, 1, 2)
		time.Sleep(time.Second) // the buckets are full: nobody misses one that is new
		s.Move(0, 1)
		s.Node(0).FailWith("MOVED 1 " + s.Addr(1))
		s.well(t, 0, 1, 2)
		time.Sleep(time.Second) // leases end
		s.Node(0).Kill()
		time.Sleep(time.Second)
		for range 20 {
			s.well(t, 0, 1, 2)
			time.Sleep(100 * time.Millisecond)
		}
		s.told(t)
		want(t, "breaker", s.lim.Stats().Breaker, "closed")
		for class, n := range s.lim.Stats().RedisCalls {
			if class != "none" && n > 0 {
				t.Errorf("%d calls of class %s", n, class)
			}
		}
	})
}

// A client that does not follow redirects: the key suffers, and nobody else.
func TestARedirectThatIsNotFollowedOpensNothing(t *testing.T) {
	for _, reply := range []string{"MOVED 1 10.0.0.2:6379", "ASK 1 10.0.0.2:6379", "TRYAGAIN Multiple keys request during rehashing of slot"} {
		synctest.Test(t, func(t *testing.T) {
			s := &shards{MiniCluster: redistest.BubbleCluster(t, 3, 1), events: new(journal)}
			s.rdb = s.Client(advisedCluster, func(o *redis.ClusterOptions) { o.MaxRedirects = -1 })
			s.lim = startOn(t, s.rdb, hybrid.PerSecond(1000), hybrid.WithName("n"), hybrid.WithEvents(s.events.add))
			s.learn(t)
			s.Node(0).FailWith(reply)
			for range 100 {
				for _, key := range s.keys[0][1:] {
					want(t, "allowed", allowN(t, s.lim, key, 1).Allowed, true)
				}
				s.well(t, 1, 2)
				time.Sleep(10 * time.Millisecond)
			}
			if n := s.lim.Stats().RedisCalls["moving"]; n < 10 {
				t.Errorf("%d calls were of class moving: nothing was tested", n)
			}
			s.Node(0).Heal()
			time.Sleep(200 * time.Millisecond)
			s.well(t, 0, 1, 2)
			s.told(t)
		})
	}
}

// All nodes are down when the limiter starts: nobody knows the masters. When the
// others come back, only the keys of the one that stays away are degraded.
func TestAClusterThatIsDownAtFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShards(t, hybrid.PerSecond(1000))
		for i := range 3 {
			s.Node(i).Kill()
		}
		for i := range 10 {
			want(t, "source", allowN(t, s.lim, fmt.Sprint("key", i), 1).Source, hybrid.SourceDegraded)
		}
		for i := 1; i < 3; i++ {
			s.Node(i).RestartEmpty()
		}
		time.Sleep(2 * time.Second)
		s.find(t)
		for range 10 {
			for _, key := range s.keys[0] {
				want(t, "source", allowN(t, s.lim, key, 1).Source, hybrid.SourceDegraded)
			}
			s.well(t, 1, 2)
			time.Sleep(100 * time.Millisecond)
		}
		story := s.story()
		if n := len(story); n < 1 || story[n-1] != "degraded "+s.Addr(0)+" connection" {
			t.Errorf("events %q, want to end with node 0 degraded", story)
		}
		want(t, "masters degraded", s.lim.Stats().MastersDegraded, 1)
	})
}

// A drill is for all masters, also those that are met during it.
func TestADrillIsForAllMasters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShards(t, hybrid.PerSecond(1000))
		if err := s.rdb.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		want(t, "source", allowN(t, s.lim, "first", 1).Source, hybrid.SourceRedis)
		s.lim.ForceDegraded(time.Second)
		for i := range 50 {
			want(t, "source", allowN(t, s.lim, fmt.Sprint("key", i), 1).Source, hybrid.SourceDegraded)
		}
		time.Sleep(time.Second)
		settle() // it ends in this moment
		s.learn(t)
		begun, ended := map[string]int{}, map[string]int{}
		for _, e := range s.events.all() {
			switch e := e.(type) {
			case hybrid.Degraded:
				begun[e.Node]++
			case hybrid.Recovered:
				ended[e.Node]++
			}
		}
		for i := range 3 {
			want(t, "drills of "+s.Addr(i), begun[s.Addr(i)], 1)
			want(t, "ends of drills of "+s.Addr(i), ended[s.Addr(i)], 1)
		}
		want(t, "degraded", s.lim.Stats().Degraded, false)
	})
}

// The announcements are on one shard. Without it the number of instances grows old,
// and the other shards go on.
func TestAnnouncementsOfALostShardAge(t *testing.T) {
	onShards(t, hybrid.PerSecond(1000), func(t *testing.T, s *shards) {
		home, err := s.rdb.MasterForKey(t.Context(), remote.FleetKey("n"))
		if err != nil {
			t.Fatal(err)
		}
		lost := slices.IndexFunc([]string{s.Addr(0), s.Addr(1), s.Addr(2)}, func(a string) bool { return a == home.Options().Addr })
		others := []int{(lost + 1) % 3, (lost + 2) % 3}
		s.well(t, others...)
		time.Sleep(time.Second)
		want(t, "instances", s.lim.Stats().InstancesLive, 1)
		s.Node(lost).Kill()
		for range 100 {
			s.well(t, others...)
			time.Sleep(100 * time.Millisecond)
		}
		stats := s.lim.Stats()
		if stats.InstancesAge < 8*time.Second {
			t.Errorf("the number of instances is %v old, want as old as the outage", stats.InstancesAge)
		}
		want(t, "instances", stats.Instances, 1)
		want(t, "masters degraded", stats.MastersDegraded, 1)
		for _, e := range s.events.all() {
			if d, ok := e.(hybrid.Degraded); ok {
				want(t, "node", d.Node, s.Addr(lost))
			}
		}
	}, hybrid.Announced())
}

// Close is bounded although calls of several masters are stuck.
func TestCloseWithFrozenMastersIsBounded(t *testing.T) {
	onShards(t, hybrid.PerSecond(1000), func(t *testing.T, s *shards) {
		s.well(t, 0, 1, 2)
		for i := range 3 {
			s.Node(i).Freeze()
		}
		d := took(func() { _ = s.lim.Close() })
		if d > hybrid.DefaultRemoteTimeout+50*time.Millisecond {
			t.Errorf("Close took %v", d)
		}
		for i := range 3 {
			s.Node(i).Thaw()
		}
	})
}
