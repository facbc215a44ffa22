package promlimit

import (
	"github.com/resilient-go/limiter/breaker"
	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/remote"
)

// A family is a metric: its name behind the namespace, and where its samples are.
type family struct {
	name, help string
	labels     []string // besides that of the limiter
	read       func(s *hybrid.Stats, to sink)
}

// families are all metrics. Samples that may come are there from the beginning, as
// zeros: increase() does not see the first event of a series that is born with it.
var families = []family{
	{"decisions_total", "Requests decided, by outcome and by who decided.", []string{"outcome", "source"}, decisions},
	total("shadowed_total", "Refusals that were admitted all the same, by a limiter that only watches.", func(s *hybrid.Stats) uint64 { return s.Shadowed }),

	{"redis_calls_total", "Script calls to Redis, by script and by class of their outcome; none is success.", []string{"operation", "class"}, calls},
	{"redis_call_seconds", "How long script calls to Redis took, by script.", []string{"operation"}, durations},
	total("script_loads_total", "Script bodies sent because a server did not know them.", func(s *hybrid.Stats) uint64 { return s.Scripts }),

	total("grants_total", "Leases granted or renewed with tokens.", func(s *hybrid.Stats) uint64 { return s.Grants }),
	total("tokens_granted_total", "Tokens granted on lease.", func(s *hybrid.Stats) uint64 { return s.TokensGranted }),
	total("tokens_spent_total", "Tokens spent from leases, as Redis was told.", func(s *hybrid.Stats) uint64 { return s.TokensSpent }),
	total("tokens_returned_total", "Tokens of leases given back to Redis.", func(s *hybrid.Stats) uint64 { return s.TokensReturned }),
	total("tokens_expired_total", "Tokens of leases that ended unspent.", func(s *hybrid.Stats) uint64 { return s.TokensExpired }),
	total("tokens_lost_total", "Tokens that Redis charged, or may have charged, for callers who did not get them.", func(s *hybrid.Stats) uint64 { return s.TokensLost }),
	total("tokens_unaccounted_total", "Tokens that reservations have cost beyond what could be charged.", func(s *hybrid.Stats) uint64 { return s.TokensUnaccounted }),

	{"degraded", "1 while the outage policy decides.", nil, func(s *hybrid.Stats, to sink) { to.flag(s.Degraded) }},
	{"degraded_seconds_total", "For how long the outage policy has decided.", nil, func(s *hybrid.Stats, to sink) { to.seconds(s.DegradedFor.Seconds()) }},
	{"masters_degraded", "Masters whose keys the outage policy decides now.", nil, func(s *hybrid.Stats, to sink) { to.gauge(int64(s.MastersDegraded)) }},
	{"breaker_state", "1 for the state that the circuit breaker is in.", []string{"state"}, states},
	{"instances", "By how many instances the limit is divided in an outage.", nil, func(s *hybrid.Stats, to sink) { to.gauge(int64(s.Instances)) }},
	{"instances_live", "Instances that reach Redis, 0 if it was never asked.", nil, func(s *hybrid.Stats, to sink) { to.gauge(int64(s.InstancesLive)) }},
	{"instances_age_seconds", "How long ago Redis told how many instances there are.", nil, func(s *hybrid.Stats, to sink) { to.length(s.InstancesAge) }},
	{"instances_assumed", "1 if nobody said how many instances there are.", nil, func(s *hybrid.Stats, to sink) { to.flag(s.InstancesAssumed) }},

	total("state_lost_total", "Buckets that were gone at Redis although they cannot have been full.", func(s *hybrid.Stats) uint64 { return s.StateLost }),

	{"keys_by_mode", "Keys that are remembered, by how they are decided.", []string{"mode"}, modes},
	{"keys", "Keys that are remembered.", nil, func(s *hybrid.Stats, to sink) { to.gauge(int64(s.Keys)) }},
	total("evictions_total", "Keys forgotten to make room for others.", func(s *hybrid.Stats) uint64 { return s.Evicted }),
	total("untracked_total", "Requests whose key found no room.", func(s *hybrid.Stats) uint64 { return s.Untracked }),
	{"waiting", "Callers who wait for tokens.", nil, func(s *hybrid.Stats, to sink) { to.gauge(s.Waiting) }},

	total("near_limit_total", "How often a key came near its limit, at most once per key and period.", func(s *hybrid.Stats) uint64 { return s.NearLimit }),
	{"bucket_left_ratio", "Which part of the burst was left when requests were decided.", nil, func(s *hybrid.Stats, to sink) { to.histogram(s.BucketLeft) }},

	total("events_dropped_total", "Events lost because their handler was too slow.", func(s *hybrid.Stats) uint64 { return s.EventsDropped }),
	total("event_panics_total", "Events lost because their handler panicked.", func(s *hybrid.Stats) uint64 { return s.EventPanics }),
}

// total is a counter without labels of its own.
func total(name, help string, read func(*hybrid.Stats) uint64) family {
	return family{name, help, nil, func(s *hybrid.Stats, to sink) { to.counter(read(s)) }}
}

func decisions(s *hybrid.Stats, to sink) {
	for source, n := range s.Allowed {
		to.counter(n, "allowed", source.String())
	}
	for source, n := range s.Refused {
		to.counter(n, "refused", source.String())
	}
}

func calls(s *hybrid.Stats, to sink) {
	for operation, byClass := range s.RedisCallsByOperation {
		for class := range remote.Class(remote.Classes) {
			to.counter(byClass[class.String()], operation, class.String())
		}
	}
}

func durations(s *hybrid.Stats, to sink) {
	for operation, h := range s.RedisSeconds {
		to.histogram(h, operation)
	}
}

func states(s *hybrid.Stats, to sink) {
	for _, state := range []breaker.State{breaker.Closed, breaker.Open, breaker.HalfOpen} {
		to.flag(s.Breaker == state.String(), state.String())
	}
}

func modes(s *hybrid.Stats, to sink) {
	for mode, n := range s.Modes {
		to.gauge(int64(n), mode)
	}
}
