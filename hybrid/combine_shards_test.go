package hybrid_test

import (
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// Keys of one decision may be at different masters. What the first have admitted is
// put back when the last one refuses, and where a master is lost its part goes on by
// the outage policy while the others are asked as ever.
func TestCombineAcrossShards(t *testing.T) {
	onShards(t, hybrid.PerHour(10), func(t *testing.T, s *shards) {
		a, b, c := s.keys[0][1], s.keys[1][1], s.keys[2][1]
		ask := func(n int) hybrid.Combined {
			return combine(t, part(s.lim, a, 1), part(s.lim, b, 1), part(s.lim, c, n))
		}
		for range 2 {
			want(t, "allowed", ask(4).Allowed, true)
		}
		for range 20 {
			refused := ask(4)
			want(t, "allowed", refused.Allowed, false)
			want(t, "refused by the last", refused.Key, c)
		}
		want(t, "left of the first", left(t, s.lim, a), 8)
		want(t, "left of the second", left(t, s.lim, b), 8)
		want(t, "left of the last", left(t, s.lim, c), 2)

		s.Node(1).Kill()
		s.lose(t, 1)
		got := ask(1)
		want(t, "allowed", got.Allowed, true)
		want(t, "the first", got.Results[0].Source == hybrid.SourceDegraded, false)
		want(t, "of the lost master", got.Results[1].Source, hybrid.SourceDegraded)
		want(t, "the last", got.Results[2].Source == hybrid.SourceDegraded, false)
		want(t, "allowed", ask(1).Allowed, true)
		before := left(t, s.lim, b)
		for range 5 {
			want(t, "refused by the last", ask(1).Key, c)
		}
		want(t, "left of the first", left(t, s.lim, a), 6)
		want(t, "left of the lost master's part", left(t, s.lim, b), before)
	}, hybrid.WithExpectedInstances(1))
}

// What a refused decision put back into a lease that cannot be returned is missing
// once, as much as the part asked for, and is counted; the rate makes up for it.
func TestCombineWhatCannotBeReturnedIsMissingOnce(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		users := start(t, r, hybrid.PerHour(10), hybrid.WithName("users"))
		other := start(t, r, hybrid.PerHour(10), hybrid.WithName("users"))
		routes := start(t, r, hybrid.PerHour(3), hybrid.WithName("routes"))
		want(t, "refused by", combine(t, part(routes, "r", 3), part(users, "u", 1)).Refused, "")
		again := start(t, r, hybrid.PerHour(3), hybrid.WithName("routes")) // which does not know of it
		want(t, "refused by", combine(t, part(users, "u", 4), part(again, "r", 1)).Refused, "routes")
		want(t, "left for another", left(t, other, "u"), 5)
		r.Partition()
		time.Sleep(5 * time.Second) // the lease has ended meanwhile
		r.Heal()
		for other.Stats().Degraded || users.Stats().Degraded {
			time.Sleep(100 * time.Millisecond)
		}
		want(t, "counted", users.Stats().TokensExpired, 4)
		want(t, "lost otherwise", users.Stats().TokensLost, 0)
		for range 3 {
			want(t, "left for another", left(t, other, "u"), 5)
		}
		time.Sleep(5 * 6 * time.Minute)
		want(t, "what the rate made of it", left(t, other, "u"), 10)
	})
}
