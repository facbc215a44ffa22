package promlimit_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
)

// A fixed limiter has the stats that a test gives it.
type fixed struct {
	name  string
	stats hybrid.Stats
}

func (f *fixed) Name() string        { return f.name }
func (f *fixed) Stats() hybrid.Stats { return f.stats }

// everything is stats without a zero among them.
func everything() hybrid.Stats {
	return hybrid.Stats{
		Allowed: map[hybrid.Source]uint64{hybrid.SourceLease: 1, hybrid.SourceRedis: 2},
		Refused: map[hybrid.Source]uint64{hybrid.SourceDenied: 3, hybrid.SourceRedis: 4},

		RedisCalls:            map[string]uint64{"none": 5, "timeout": 6},
		RedisCallsByOperation: map[string]map[string]uint64{"acquire": {"none": 3, "timeout": 6}, "peek": {"none": 2}},
		RedisSeconds: map[string]hybrid.Histogram{
			"acquire": {Bounds: []float64{0.001, 0.01}, Counts: []uint64{1, 2, 6}, Sum: 0.625},
			"peek":    {Bounds: []float64{0.001, 0.01}, Counts: []uint64{0, 2, 0}, Sum: 0.0078125},
		},
		Scripts: 7,

		Grants: 8, TokensGranted: 100, TokensSpent: 50, TokensReturned: 30, TokensExpired: 15, TokensLost: 9, TokensUnaccounted: 23,

		BucketLeft: hybrid.Histogram{Bounds: []float64{0, 0.5}, Counts: []uint64{4, 0, 6}, Sum: 5.5},
		Shadowed:   18,
		NearLimit:  10,

		Degraded: true, DegradedFor: 1500 * time.Millisecond, MastersDegraded: 23,
		Breaker: "half-open", Instances: 11, InstancesAssumed: true,
		InstancesLive: 19, InstancesAge: 2500 * time.Millisecond, StateLost: 20, Modes: map[string]int{"lump": 21, "rate": 22},

		Keys: 12, Evicted: 13, Untracked: 14, Waiting: 15,
		EventsDropped: 16, EventPanics: 17,
	}
}

// exported says which metrics show each field of the stats.
var exported = map[string]string{
	"Allowed":               "decisions_total",
	"Refused":               "decisions_total",
	"RedisCallsByOperation": "redis_calls_total",
	"RedisSeconds":          "redis_call_seconds",
	"Scripts":               "script_loads_total",
	"Grants":                "grants_total",
	"TokensGranted":         "tokens_granted_total",
	"TokensSpent":           "tokens_spent_total",
	"TokensReturned":        "tokens_returned_total",
	"TokensExpired":         "tokens_expired_total",
	"TokensLost":            "tokens_lost_total",
	"TokensUnaccounted":     "tokens_unaccounted_total",
	"BucketLeft":            "bucket_left_ratio",
	"Shadowed":              "shadowed_total",
	"NearLimit":             "near_limit_total",
	"Degraded":              "degraded",
	"DegradedFor":           "degraded_seconds_total",
	"MastersDegraded":       "masters_degraded",
	"Breaker":               "breaker_state",
	"Instances":             "instances",
	"InstancesAssumed":      "instances_assumed",
	"InstancesLive":         "instances_live",
	"InstancesAge":          "instances_age_seconds",
	"StateLost":             "state_lost_total",
	"Modes":                 "keys_by_mode",
	"Keys":                  "keys",
	"Evicted":               "evictions_total",
	"Untracked":             "untracked_total",
	"Waiting":               "waiting",
	"EventsDropped":         "events_dropped_total",
	"EventPanics":           "event_panics_total",
}

// leftOut says why a field is not exported.
var leftOut = map[string]string{
	"RedisCalls": "it is the sum of RedisCallsByOperation over the operations",
}

// TestEachStatIsExported changes one field after the other and looks which metric
// follows.
func TestEachStatIsExported(t *testing.T) {
	all := reflect.ValueOf(everything())
	for i := range all.NumField() {
		field := all.Type().Field(i).Name
		if all.Field(i).IsZero() {
			t.Errorf("%s is not tried: everything leaves it zero", field)
		}
		metric, shown := exported[field]
		if _, out := leftOut[field]; shown == out {
			t.Errorf("%s must be in exported or in leftOut", field)
			continue
		}
		var wanted []string
		if shown {
			wanted = []string{metric}
		}
		lim := &fixed{name: "api"}
		reg := registry(t, lim)
		before := map[string]string{}
		for _, f := range gather(t, reg) {
			before[f.GetName()] = f.String()
		}
		reflect.ValueOf(&lim.stats).Elem().Field(i).Set(all.Field(i))
		after := gather(t, reg)
		changed := names(after[:0:0])
		for _, f := range after {
			if before[f.GetName()] != f.String() {
				changed = append(changed, f.GetName()[len("resilient_limiter_"):])
			}
		}
		if !slices.Equal(changed, wanted) {
			t.Errorf("%s changes %v, want %v", field, changed, wanted)
		}
	}
	for _, field := range slices.Concat(slices.Collect(maps.Keys(exported)), slices.Collect(maps.Keys(leftOut))) {
		if _, ok := all.Type().FieldByName(field); !ok {
			t.Errorf("the stats have no field %s", field)
		}
	}
	got := names(gather(t, registry(t, &fixed{name: "api", stats: everything()})))
	wanted := slices.Sorted(maps.Values(exported))
	want(t, "the metrics", fmt.Sprint(got), fmt.Sprint(slices.Compact(wanted)))
}
