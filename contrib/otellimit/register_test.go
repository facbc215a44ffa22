package otellimit_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/resilient-go/limiter/contrib/otellimit"
	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

func TestTwoLimitersDoNotClash(t *testing.T) {
	bubble(t, func(t *testing.T, mini *redistest.Mini) {
		a := start(t, mini, hybrid.PerMinute(3), hybrid.WithName("a"))
		b := start(t, mini, hybrid.PerMinute(3), hybrid.WithName("b"))
		c := start(t, mini, hybrid.PerMinute(3), hybrid.WithName("c"))
		r := newReader(t)
		register(t, r, a, b)
		register(t, r, c) // of another part of the program
		ask(t, a, "k", 1, 0)
		ask(t, b, "k", 2, 0)
		ask(t, c, "k", 4, 0)
		values, _ := r.points(t) // none is there twice
		for name, want := range map[string]float64{
			"decisions{limiter=a,outcome=allowed,source=redis}": 1,
			"decisions{limiter=b,outcome=allowed,source=redis}": 2,
			"decisions{limiter=c,outcome=allowed,source=redis}": 3,
			"decisions{limiter=c,outcome=refused,source=redis}": 1,
			"keys{limiter=a}": 1,
			"keys{limiter=b}": 1,
			"keys{limiter=c}": 1,
		} {
			if values[name] != want {
				t.Errorf("%s = %v, want %v", name, values[name], want)
			}
		}
	})
}

func TestWrongArguments(t *testing.T) {
	p := noop.NewMeterProvider()
	a := &fake{name: "a"}
	for name, test := range map[string]struct {
		provider metric.MeterProvider
		limiters []otellimit.Limiter
		want     string
	}{
		"no provider":           {nil, []otellimit.Limiter{a}, "otellimit: provider: it is nil"},
		"a nil provider":        {(*meterReader)(nil), []otellimit.Limiter{a}, "otellimit: provider: it is nil"},
		"no limiters":           {p, nil, "otellimit: limiters: there are none"},
		"a nil limiter":         {p, []otellimit.Limiter{a, (*hybrid.Limiter)(nil)}, "otellimit: limiters: number 1 is nil"},
		"nil":                   {p, []otellimit.Limiter{nil}, "otellimit: limiters: number 0 is nil"},
		"a name twice":          {p, []otellimit.Limiter{a, &fake{name: "b"}, &fake{name: "a"}}, `otellimit: limiters: two have the name "a"`},
		"names that look alike": {p, []otellimit.Limiter{&fake{name: "a\xff"}, &fake{name: "a\xfe"}}, "otellimit: limiters: two have the name \"a\uFFFD\""},
		"a limiter twice":       {p, []otellimit.Limiter{a, a}, `otellimit: limiters: two have the name "a"`},
	} {
		t.Run(name, func(t *testing.T) {
			unregister, err := otellimit.Register(test.provider, test.limiters...)
			var fault *otellimit.ConfigError
			if !errors.As(err, &fault) || err.Error() != test.want || unregister != nil {
				t.Errorf("Register: %v, want %q", err, test.want)
			}
		})
	}
}

// A broken meter fails for one instrument, or for the callback.
type broken struct {
	noop.Meter
	instrument string
	registered int
}

// A brokenProvider has one meter.
type brokenProvider struct {
	noop.MeterProvider
	meter *broken
}

var errBroken = errors.New("broken")

func (p brokenProvider) Meter(string, ...metric.MeterOption) metric.Meter { return p.meter }

func (b *broken) Int64ObservableGauge(name string, _ ...metric.Int64ObservableGaugeOption) (metric.Int64ObservableGauge, error) {
	if name == b.instrument {
		return nil, errBroken
	}
	return noop.Int64ObservableGauge{}, nil
}

func (b *broken) RegisterCallback(metric.Callback, ...metric.Observable) (metric.Registration, error) {
	b.registered++
	return nil, errBroken
}

func TestFaultsOfTheProviderAreReturned(t *testing.T) {
	b := &broken{instrument: "resilient_limiter.instances"}
	_, err := otellimit.Register(brokenProvider{meter: b}, &fake{name: "a"})
	if !errors.Is(err, errBroken) || !strings.Contains(err.Error(), "instances") || b.registered != 0 {
		t.Errorf("an instrument: %v, %d callbacks", err, b.registered)
	}
	b = &broken{}
	unregister, err := otellimit.Register(brokenProvider{meter: b}, &fake{name: "a"})
	if !errors.Is(err, errBroken) || unregister != nil || b.registered != 1 {
		t.Errorf("the callback: %v, %d callbacks", err, b.registered)
	}
}

// TestNameThatIsNoUTF8 is made so: an exporter would fail for all metrics.
func TestNameThatIsNoUTF8(t *testing.T) {
	r := newReader(t)
	register(t, r, &fake{name: "a\xffb", stats: sample()})
	values, _ := r.points(t)
	if v := values["keys{limiter=a\uFFFDb}"]; v != 18 {
		t.Errorf("keys = %v of %v", v, lines(values))
	}
}

func TestUnregister(t *testing.T) {
	r := newReader(t)
	unregister := register(t, r, &fake{name: "a", stats: sample()})
	register(t, r, &fake{name: "b", stats: sample()})
	both, _ := r.points(t)
	for range 2 { // the second call does nothing
		if err := unregister(); err != nil {
			t.Fatal(err)
		}
	}
	one, _ := r.points(t)
	if len(one) == 0 || len(one)*2 != len(both) {
		t.Errorf("%d points of both, %d of one", len(both), len(one))
	}
	for name := range one {
		if strings.Contains(name, "limiter=a") {
			t.Errorf("%s is still there", name)
		}
	}
	register(t, r, &fake{name: "a", stats: sample()})
	again, _ := r.points(t)
	if len(again) != len(both) {
		t.Errorf("%d points when it is back, want %d", len(again), len(both))
	}
}

// TestCollectWhileInUse is for the race detector: requests, collections, and the
// ends of a limiter and of its registration come as they like.
func TestCollectWhileInUse(t *testing.T) {
	mini := redistest.MiniTCP(t)
	lim := start(t, mini, hybrid.PerSecond(1000), hybrid.WithName("a"))
	other := start(t, mini, hybrid.PerSecond(1000), hybrid.WithName("b"))
	r := newReader(t)
	unregister := register(t, r, lim, other)
	var working sync.WaitGroup
	for range 4 {
		working.Go(func() {
			for i := range 300 {
				for _, l := range []*hybrid.Limiter{lim, other} {
					if _, err := l.Allow(t.Context(), "k"); err != nil && (l != other || !errors.Is(err, hybrid.ErrClosed)) {
						t.Error(err)
					}
				}
				if i == 200 {
					_ = other.Close()
				}
			}
		})
	}
	working.Go(func() {
		for range 50 {
			r.points(t)
		}
	})
	working.Wait()
	_, counters := r.points(t)
	sum := 0.0
	for name, v := range counters {
		if strings.HasPrefix(name, "decisions{limiter=a,") {
			sum += v
		}
	}
	if sum != 4*300 {
		t.Errorf("%v decisions, want %d", sum, 4*300)
	}
	working.Go(func() {
		for range 20 {
			r.points(t)
		}
	})
	working.Go(func() {
		if err := unregister(); err != nil {
			t.Error(err)
		}
	})
	working.Wait()
	if left, _ := r.points(t); len(left) != 0 {
		t.Errorf("%d points are left", len(left))
	}
}
