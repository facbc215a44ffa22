package otellimit_test

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/resilient-go/limiter/contrib/otellimit"
	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

func TestMain(m *testing.M) {
	redistest.SilenceClientLog()
	os.Exit(m.Run())
}

var _ otellimit.Limiter = (*hybrid.Limiter)(nil)

// A fake is a limiter with statistics of the test.
type fake struct {
	name string

	mu    sync.Mutex
	stats hybrid.Stats
}

func (f *fake) Name() string { return f.name }

func (f *fake) Stats() hybrid.Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stats
}

// A meterReader is a provider with a reader that the test collects from.
type meterReader struct {
	*metric.MeterProvider
	reader *metric.ManualReader
}

func newReader(t testing.TB) meterReader {
	t.Helper()
	r := metric.NewManualReader()
	p := metric.NewMeterProvider(metric.WithReader(r))
	t.Cleanup(func() {
		if err := p.Shutdown(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	return meterReader{p, r}
}

// collect gives the present metrics of all scopes.
func (r meterReader) collect(t testing.TB) []metricdata.Metrics {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := r.reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	var list []metricdata.Metrics
	for _, scope := range all.ScopeMetrics {
		if scope.Scope.Name != otellimit.ScopeName {
			t.Errorf("the scope is %q", scope.Scope.Name)
		}
		list = append(list, scope.Metrics...)
	}
	return list
}

// points gives the present values by name and attributes, such as
// "keys{limiter=a}". Only counters are in the second map.
func (r meterReader) points(t testing.TB) (values, counters map[string]float64) {
	t.Helper()
	values, counters = map[string]float64{}, map[string]float64{}
	add := func(m metricdata.Metrics, set attribute.Set, v float64, monotonic bool) {
		name := nameOf(m, set)
		if _, ok := values[name]; ok {
			t.Errorf("%s is there twice", name)
		}
		values[name] = v
		if monotonic {
			counters[name] = v
		}
	}
	for _, m := range r.collect(t) {
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				add(m, p.Attributes, float64(p.Value), data.IsMonotonic)
			}
		case metricdata.Sum[float64]:
			for _, p := range data.DataPoints {
				add(m, p.Attributes, p.Value, data.IsMonotonic)
			}
		case metricdata.Gauge[int64]:
			for _, p := range data.DataPoints {
				add(m, p.Attributes, float64(p.Value), false)
			}
		case metricdata.Gauge[float64]:
			for _, p := range data.DataPoints {
				add(m, p.Attributes, p.Value, false)
			}
		default:
			t.Errorf("%s is a %T", m.Name, m.Data)
		}
	}
	return values, counters
}

func nameOf(m metricdata.Metrics, set attribute.Set) string {
	name, ok := strings.CutPrefix(m.Name, "resilient_limiter.")
	if !ok {
		name = "?" + m.Name
	}
	var attrs []string
	for _, kv := range set.ToSlice() { // sorted by key
		attrs = append(attrs, fmt.Sprintf("%s=%s", kv.Key, kv.Value.Emit()))
	}
	return name + "{" + strings.Join(attrs, ",") + "}"
}

// lines are values as sorted text.
func lines(values map[string]float64) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		list = append(list, fmt.Sprintf("%s %v", name, values[name]))
	}
	return list
}

// register registers limiters that must be accepted, for the length of the test.
func register(t testing.TB, r meterReader, limiters ...otellimit.Limiter) (unregister func() error) {
	t.Helper()
	unregister, err := otellimit.Register(r, limiters...)
	if err != nil {
		t.Fatal(err)
	}
	return unregister
}

// bubble runs f on fake time with a Redis of its own.
func bubble(t *testing.T, f func(t *testing.T, r *redistest.Mini)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, redistest.Bubble(t)) })
}

// start returns a real limiter that is closed with the test.
func start(t testing.TB, r *redistest.Mini, limit hybrid.Limit, options ...hybrid.Option) *hybrid.Limiter {
	t.Helper()
	rdb := r.Client(func(o *redis.Options) {
		addr, dialer, pool := o.Addr, o.Dialer, o.PoolSize
		*o = *hybrid.RedisOptions(addr).Simple()
		o.Addr, o.Dialer, o.PoolSize = addr, dialer, pool
	})
	options = append([]hybrid.Option{hybrid.WithLogger(slog.New(slog.DiscardHandler))}, options...)
	lim, err := hybrid.New(rdb, limit, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lim.Close() })
	return lim
}

// ask sends n requests for a key, one each gap.
func ask(t testing.TB, lim *hybrid.Limiter, key string, n int, gap time.Duration) {
	t.Helper()
	for range n {
		if _, err := lim.Allow(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		if gap > 0 {
			time.Sleep(gap)
		}
		synctest.Wait()
	}
}

// wantLines fails the test with the lines that are missing or too many.
func wantLines(t testing.TB, got, wanted []string) {
	t.Helper()
	for _, l := range wanted {
		if !slices.Contains(got, l) {
			t.Errorf("missing: %s", l)
		}
	}
	for _, l := range got {
		if !slices.Contains(wanted, l) {
			t.Errorf("not wanted: %s", l)
		}
	}
}
