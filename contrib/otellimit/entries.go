package otellimit

import (
	"strconv"

	"go.opentelemetry.io/otel/attribute"

	"github.com/resilient-go/limiter/hybrid"
)

// An entry is a metric: an instrument, and what it reads of the statistics.
type entry struct {
	name string
	kind kind
	unit string
	text string
	read func(s *hybrid.Stats) []point
}

// A point is one value: whole, or part for an amount.
type point struct {
	whole int64
	part  float64
	attrs []attribute.KeyValue
}

var entries = []entry{
	{"decisions", total, "{request}", "Requests that were decided, by outcome and by who decided.", decisions},
	{"shadowed", total, "{request}", "Refusals that were admitted all the same, by a limiter that only watches.", count(func(s *hybrid.Stats) uint64 { return s.Shadowed })},
	{
		"bucket_left.buckets", total, "{request}", "Decisions that found at most this part of the burst left.",
		func(s *hybrid.Stats) []point { return buckets(s.BucketLeft) },
	},
	{
		"bucket_left.sum", amount, "1", "Parts of the burst that were left, over all decisions.",
		func(s *hybrid.Stats) []point { return []point{{part: s.BucketLeft.Sum}} },
	},
	{"redis.calls", total, "{call}", "Script calls that were sent to Redis, by the class of their outcome.", calls},
	{"redis.calls.duration", amount, "s", "Time that calls to Redis took, over all calls.", callTime},
	{"redis.calls.buckets", total, "{call}", "Calls to Redis that took at most this long.", callBuckets},
	{"script_loads", total, "{call}", "How often a script's body was sent, because a server did not know it.", count(func(s *hybrid.Stats) uint64 { return s.Scripts })},
	{"grants", total, "{lease}", "Leases that were granted or renewed with tokens.", count(func(s *hybrid.Stats) uint64 { return s.Grants })},
	{"tokens.granted", total, "{token}", "Tokens granted on lease.", count(func(s *hybrid.Stats) uint64 { return s.TokensGranted })},
	{"tokens.spent", total, "{token}", "Tokens spent from leases, as Redis was told.", count(func(s *hybrid.Stats) uint64 { return s.TokensSpent })},
	{"tokens.returned", total, "{token}", "Tokens on lease that were given back.", count(func(s *hybrid.Stats) uint64 { return s.TokensReturned })},
	{"tokens.expired", total, "{token}", "Tokens on lease that ended unspent.", count(func(s *hybrid.Stats) uint64 { return s.TokensExpired })},
	{"tokens.lost", total, "{token}", "Tokens charged, or maybe charged, for callers who did not get them.", count(func(s *hybrid.Stats) uint64 { return s.TokensLost })},
	{"tokens.unaccounted", total, "{token}", "Tokens that reservations have cost beyond what could be charged.", count(func(s *hybrid.Stats) uint64 { return s.TokensUnaccounted })},
	{"near_limit", total, "{event}", "Times that little of a key's bucket was left.", count(func(s *hybrid.Stats) uint64 { return s.NearLimit })},
	{"degraded", level, "{limiter}", "1 while the outage policy decides, else 0.", now(func(s *hybrid.Stats) int64 { return one(s.Degraded) })},
	{
		"degraded.time", amount, "s", "Time in which the outage policy decided.",
		func(s *hybrid.Stats) []point { return []point{{part: s.DegradedFor.Seconds()}} },
	},
	{"masters.degraded", reading, "{master}", "Masters whose keys the outage policy decides now.", now(func(s *hybrid.Stats) int64 { return int64(s.MastersDegraded) })},
	{"breaker.state", level, "{limiter}", "1 for the state that the circuit breaker is in, 0 for the others.", breaker},
	{"instances", reading, "{instance}", "Instances that the limit is divided by in an outage.", now(func(s *hybrid.Stats) int64 { return int64(s.Instances) })},
	{"instances.live", reading, "{instance}", "Instances that reach Redis, 0 if it was never asked.", now(func(s *hybrid.Stats) int64 { return int64(s.InstancesLive) })},
	{
		"instances.age", age, "s", "How long ago Redis told how many instances there are, 0 if it never did.",
		func(s *hybrid.Stats) []point { return []point{{part: s.InstancesAge.Seconds()}} },
	},
	{"state_lost", total, "{key}", "Buckets that were gone at Redis although they cannot have been full.", count(func(s *hybrid.Stats) uint64 { return s.StateLost })},
	{"keys.by_mode", level, "{key}", "Keys that are remembered, by how they are decided.", modes},
	{"instances.assumed", level, "{limiter}", "1 if nobody said how many instances there are, else 0.", now(func(s *hybrid.Stats) int64 { return one(s.InstancesAssumed) })},
	{"keys", level, "{key}", "Keys that are remembered.", now(func(s *hybrid.Stats) int64 { return int64(s.Keys) })},
	{"evictions", total, "{key}", "Keys that were forgotten for others.", count(func(s *hybrid.Stats) uint64 { return s.Evicted })},
	{"untracked", total, "{request}", "Requests whose key found no room.", count(func(s *hybrid.Stats) uint64 { return s.Untracked })},
	{"waiting", level, "{request}", "Callers that wait for tokens.", now(func(s *hybrid.Stats) int64 { return s.Waiting })},
	{"events_dropped", total, "{event}", "Events that did not fit the queue.", count(func(s *hybrid.Stats) uint64 { return s.EventsDropped })},
	{"event_panics", total, "{event}", "Events that were lost because their handler panicked.", count(func(s *hybrid.Stats) uint64 { return s.EventPanics })},
}

// count is the reading of one counter.
func count(of func(*hybrid.Stats) uint64) func(*hybrid.Stats) []point {
	return func(s *hybrid.Stats) []point { return []point{{whole: int64(of(s))}} }
}

// now is the reading of one level.
func now(of func(*hybrid.Stats) int64) func(*hybrid.Stats) []point {
	return func(s *hybrid.Stats) []point { return []point{{whole: of(s)}} }
}

func one(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

func decisions(s *hybrid.Stats) []point {
	var points []point
	for outcome, counts := range map[string]map[hybrid.Source]uint64{"allowed": s.Allowed, "refused": s.Refused} {
		for source, n := range counts {
			points = append(points, point{whole: int64(n), attrs: []attribute.KeyValue{
				attribute.String("outcome", outcome), attribute.String("source", source.String()),
			}})
		}
	}
	return points
}

func calls(s *hybrid.Stats) []point {
	var points []point
	for operation, classes := range s.RedisCallsByOperation {
		for class, n := range classes {
			points = append(points, point{whole: int64(n), attrs: []attribute.KeyValue{
				attribute.String("operation", operation), attribute.String("class", class),
			}})
		}
	}
	return points
}

func callTime(s *hybrid.Stats) []point {
	var points []point
	for operation, h := range s.RedisSeconds {
		points = append(points, point{part: h.Sum, attrs: []attribute.KeyValue{attribute.String("operation", operation)}})
	}
	return points
}

func callBuckets(s *hybrid.Stats) []point {
	var points []point
	for operation, h := range s.RedisSeconds {
		points = append(points, buckets(h, attribute.String("operation", operation))...)
	}
	return points
}

// buckets are the cumulated counts of a histogram.
func buckets(h hybrid.Histogram, attrs ...attribute.KeyValue) []point {
	points := make([]point, len(h.Counts))
	var sum uint64
	for i, n := range h.Counts {
		sum += n
		le := "+Inf"
		if i < len(h.Bounds) {
			le = strconv.FormatFloat(h.Bounds[i], 'g', -1, 64)
		}
		points[i] = point{whole: int64(sum), attrs: append([]attribute.KeyValue{attribute.String("le", le)}, attrs...)}
	}
	return points
}

func modes(s *hybrid.Stats) []point {
	var points []point
	for mode, n := range s.Modes {
		points = append(points, point{whole: int64(n), attrs: []attribute.KeyValue{attribute.String("mode", mode)}})
	}
	return points
}

// breaker gives each state a point, so that a sum over instances counts those in
// it. A state that this package does not know has one too.
func breaker(s *hybrid.Stats) []point {
	states := []string{"closed", "open", "half-open"}
	known := false
	for _, state := range states {
		known = known || state == s.Breaker
	}
	if !known {
		states = append(states, s.Breaker)
	}
	points := make([]point, len(states))
	for i, state := range states {
		points[i] = point{whole: one(state == s.Breaker), attrs: []attribute.KeyValue{attribute.String("state", state)}}
	}
	return points
}
