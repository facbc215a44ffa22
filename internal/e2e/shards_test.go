package e2e

import (
	"maps"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
	"github.com/resilient-go/limiter/remote"
)

// One Cluster serves all of these, the gentle ones first.
func TestLosingOneShardOfSeveral(t *testing.T) {
	set := redistest.Shards(t, 3)
	t.Run("slots move under load", func(t *testing.T) { slotsMove(t, set) })
	t.Run("a master is frozen", func(t *testing.T) { masterFrozen(t, set) })
	t.Run("a master dies", func(t *testing.T) { masterDies(t, set) })
	t.Run("all nodes die", func(t *testing.T) { allDie(t, set) })
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
	defer func() { _ = peeked.Close() }()
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

// The cluster is gone: nobody gets an error, and no node is dialled more than four times
// a second, with the probes and the looks for masters.
func allDie(t *testing.T, set *redistest.ShardSet) {
	s := startShardedOn(t, set, hybrid.PerSecond(10_000), 1, 2)
	s.goOn(20, 1, 2)
	s.KillAll()
	eventually(t, "all masters are degraded", func() bool { return s.lim.Stats().MastersDegraded >= 2 })
	dials := func() map[string]int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return maps.Clone(s.dials)
	}
	before, begun := dials(), time.Now()
	eventually(t, "three seconds pass", func() bool { return time.Since(begun) > 3*time.Second })
	s.rest()
	most := 4*time.Since(begun).Seconds() + 2
	total := 0
	for addr, n := range dials() {
		n -= before[addr]
		total += n
		if float64(n) > most {
			t.Errorf("%s was dialled %d times in %v, want %.0f at most", addr, n, time.Since(begun), most)
		}
	}
	t.Logf("%d dials in %v to all nodes together", total, time.Since(begun))
	if total == 0 {
		t.Error("nothing was dialled: nothing was tested")
	}
}
