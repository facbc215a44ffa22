package otellimit_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/resilient-go/limiter/hybrid"
)

// sample has another value in each field.
func sample() hybrid.Stats {
	return hybrid.Stats{
		Allowed:    map[hybrid.Source]uint64{hybrid.SourceLease: 101, hybrid.SourceRedis: 102},
		Refused:    map[hybrid.Source]uint64{hybrid.SourceDenied: 103},
		RedisCalls: map[string]uint64{"none": 107, "timeout": 6},
		RedisCallsByOperation: map[string]map[string]uint64{
			"acquire": {"none": 104, "timeout": 6}, "peek": {"none": 3},
		},
		RedisSeconds: map[string]hybrid.Histogram{
			"acquire": {Bounds: []float64{0.00025, 1}, Counts: []uint64{100, 9, 1}, Sum: 4.5},
			"peek":    {Bounds: []float64{0.00025, 1}, Counts: []uint64{3, 0, 0}, Sum: 0.25},
		},
		Scripts: 7, Grants: 8, TokensGranted: 9, TokensSpent: 10, TokensReturned: 11, TokensExpired: 12, TokensLost: 13, TokensUnaccounted: 29,
		BucketLeft: hybrid.Histogram{Bounds: []float64{0, 0.1}, Counts: []uint64{14, 1, 2}, Sum: 15.5},
		NearLimit:  16, Degraded: true, DegradedFor: 1750 * time.Millisecond, MastersDegraded: 29, Breaker: "half-open",
		Instances: 17, InstancesAssumed: true, Keys: 18, Evicted: 19, Untracked: 20, Waiting: 21,
		EventsDropped: 22, EventPanics: 23, Shadowed: 24,
		InstancesLive: 25, InstancesAge: 2500 * time.Millisecond, StateLost: 26, Modes: map[string]int{"lump": 27, "rate": 28},
	}
}

func TestEveryValueIsExported(t *testing.T) {
	r := newReader(t)
	register(t, r, &fake{name: "api", stats: sample()})
	values, _ := r.points(t)
	wantLines(t, lines(values), []string{
		"decisions{limiter=api,outcome=allowed,source=lease} 101",
		"decisions{limiter=api,outcome=allowed,source=redis} 102",
		"decisions{limiter=api,outcome=refused,source=denied} 103",
		"shadowed{limiter=api} 24",
		"bucket_left.buckets{le=0,limiter=api} 14",
		"bucket_left.buckets{le=0.1,limiter=api} 15",
		"bucket_left.buckets{le=+Inf,limiter=api} 17",
		"bucket_left.sum{limiter=api} 15.5",
		"redis.calls{class=none,limiter=api,operation=acquire} 104",
		"redis.calls{class=timeout,limiter=api,operation=acquire} 6",
		"redis.calls{class=none,limiter=api,operation=peek} 3",
		"redis.calls.duration{limiter=api,operation=acquire} 4.5",
		"redis.calls.duration{limiter=api,operation=peek} 0.25",
		"redis.calls.buckets{le=0.00025,limiter=api,operation=acquire} 100",
		"redis.calls.buckets{le=1,limiter=api,operation=acquire} 109",
		"redis.calls.buckets{le=+Inf,limiter=api,operation=acquire} 110",
		"redis.calls.buckets{le=0.00025,limiter=api,operation=peek} 3",
		"redis.calls.buckets{le=1,limiter=api,operation=peek} 3",
		"redis.calls.buckets{le=+Inf,limiter=api,operation=peek} 3",
		"script_loads{limiter=api} 7",
		"grants{limiter=api} 8",
		"tokens.granted{limiter=api} 9",
		"tokens.spent{limiter=api} 10",
		"tokens.returned{limiter=api} 11",
		"tokens.expired{limiter=api} 12",
		"tokens.lost{limiter=api} 13",
		"tokens.unaccounted{limiter=api} 29",
		"near_limit{limiter=api} 16",
		"degraded{limiter=api} 1",
		"degraded.time{limiter=api} 1.75",
		"masters.degraded{limiter=api} 29",
		"breaker.state{limiter=api,state=closed} 0",
		"breaker.state{limiter=api,state=open} 0",
		"breaker.state{limiter=api,state=half-open} 1",
		"instances{limiter=api} 17",
		"instances.live{limiter=api} 25",
		"instances.age{limiter=api} 2.5",
		"state_lost{limiter=api} 26",
		"keys.by_mode{limiter=api,mode=lump} 27",
		"keys.by_mode{limiter=api,mode=rate} 28",
		"instances.assumed{limiter=api} 1",
		"keys{limiter=api} 18",
		"evictions{limiter=api} 19",
		"untracked{limiter=api} 20",
		"waiting{limiter=api} 21",
		"events_dropped{limiter=api} 22",
		"event_panics{limiter=api} 23",
	})
}

// TestKindsAndUnits: what may be added up is a sum, what only grows is monotonic.
func TestKindsAndUnits(t *testing.T) {
	r := newReader(t)
	register(t, r, &fake{name: "api", stats: sample()})
	var got []string
	for _, m := range r.collect(t) {
		kind := ""
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			kind = fmt.Sprint("sum ", data.IsMonotonic, " ", data.Temporality)
		case metricdata.Sum[float64]:
			kind = fmt.Sprint("sum ", data.IsMonotonic, " ", data.Temporality)
		case metricdata.Gauge[int64], metricdata.Gauge[float64]:
			kind = "gauge"
		}
		got = append(got, strings.TrimPrefix(m.Name, "resilient_limiter.")+" "+m.Unit+" "+kind)
		if !strings.HasSuffix(m.Description, ".") {
			t.Errorf("%s is described by %q", m.Name, m.Description)
		}
	}
	const counter, level = " sum true CumulativeTemporality", " sum false CumulativeTemporality"
	wantLines(t, got, []string{
		"decisions {request}" + counter,
		"shadowed {request}" + counter,
		"bucket_left.buckets {request}" + counter,
		"bucket_left.sum 1" + counter,
		"redis.calls {call}" + counter,
		"redis.calls.duration s" + counter,
		"redis.calls.buckets {call}" + counter,
		"script_loads {call}" + counter,
		"grants {lease}" + counter,
		"tokens.granted {token}" + counter,
		"tokens.spent {token}" + counter,
		"tokens.returned {token}" + counter,
		"tokens.expired {token}" + counter,
		"tokens.lost {token}" + counter,
		"tokens.unaccounted {token}" + counter,
		"near_limit {event}" + counter,
		"degraded {limiter}" + level,
		"degraded.time s" + counter,
		"masters.degraded {master} gauge",
		"breaker.state {limiter}" + level,
		"instances {instance} gauge",
		"instances.assumed {limiter}" + level,
		"keys {key}" + level,
		"evictions {key}" + counter,
		"untracked {request}" + counter,
		"waiting {request}" + level,
		"instances.live {instance} gauge",
		"instances.age s gauge",
		"state_lost {key}" + counter,
		"keys.by_mode {key}" + level,
		"events_dropped {event}" + counter,
		"event_panics {event}" + counter,
	})
}

// TestEveryFieldOfStatsIsExported: a new field has to be exported, or named here
// with the reason why not.
func TestEveryFieldOfStatsIsExported(t *testing.T) {
	leftOut := map[string]string{
		"RedisCalls": "RedisCallsByOperation has the same calls",
	}
	f := &fake{name: "api", stats: sample()}
	r := newReader(t)
	register(t, r, f)
	values, _ := r.points(t)
	before := lines(values)
	fields := reflect.TypeFor[hybrid.Stats]()
	for i := range fields.NumField() {
		name := fields.Field(i).Name
		f.stats = sample()
		reflect.ValueOf(&f.stats).Elem().Field(i).SetZero()
		values, _ := r.points(t)
		same := slices.Equal(lines(values), before)
		if _, out := leftOut[name]; out != same {
			t.Errorf("without %s the metrics are the same: %v, left out: %v", name, same, out)
		}
		delete(leftOut, name)
	}
	for name := range leftOut {
		t.Errorf("Stats has no field %s", name)
	}
}

// TestStateThatIsNotKnown of a breaker has a point too.
func TestStateThatIsNotKnown(t *testing.T) {
	f := &fake{name: "api", stats: hybrid.Stats{Breaker: "forced"}}
	r := newReader(t)
	register(t, r, f)
	values, _ := r.points(t)
	for state, want := range map[string]float64{"closed": 0, "open": 0, "half-open": 0, "forced": 1} {
		name := "breaker.state{limiter=api,state=" + state + "}"
		if v, ok := values[name]; !ok || v != want {
			t.Errorf("%s = %v, %v, want %v", name, v, ok, want)
		}
	}
}
