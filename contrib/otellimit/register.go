package otellimit

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/resilient-go/limiter/hybrid"
)

// ScopeName is the name of the meter, the instrumentation scope of the metrics.
const ScopeName = "github.com/resilient-go/limiter/contrib/otellimit"

// A Limiter has a name and statistics. [*hybrid.Limiter] is one; a test may use
// its own.
type Limiter interface {
	Name() string
	Stats() hybrid.Stats
}

// A ConfigError says which argument of [Register] is wrong.
type ConfigError struct {
	Field  string // "provider", "limiters"
	Reason string
}

func (e *ConfigError) Error() string { return "otellimit: " + e.Field + ": " + e.Reason }

// Register exports the statistics of limiters through meters of provider, until
// unregister is called. It may be called while they are in use, and again for other
// limiters.
//
// The name of a limiter is what tells its points from others, so names must
// differ. Within one call that is checked; across calls nobody can: points of two
// limiters of one name and provider would be added up or overwrite each other.
//
// Call unregister before a limiter is dropped, else the provider keeps it alive,
// and before or after its Close: a closed limiter still has its counters. A second
// call of unregister does nothing. The error is a [*ConfigError] or what the
// provider's instruments failed with; then nothing is registered.
func Register(provider metric.MeterProvider, limiters ...Limiter) (unregister func() error, err error) {
	if isNil(provider) {
		return nil, &ConfigError{Field: "provider", Reason: "it is nil"}
	}
	watched, err := watch(limiters)
	if err != nil {
		return nil, err
	}
	meter := provider.Meter(ScopeName)
	instruments := make([]instrument, len(entries))
	observables := make([]metric.Observable, len(entries))
	var faults []error
	for i, e := range entries {
		if instruments[i], err = e.instrument(meter); err != nil {
			faults = append(faults, fmt.Errorf("otellimit: %s: %w", e.name, err))
		}
		observables[i] = instruments[i].observable()
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	registration, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for _, w := range watched {
			w.observe(o, instruments)
		}
		return nil
	}, observables...)
	if err != nil {
		return nil, fmt.Errorf("otellimit: %w", err)
	}
	return registration.Unregister, nil
}

// A watched limiter has its name as an attribute.
type watched struct {
	Limiter
	name attribute.KeyValue
}

func watch(limiters []Limiter) ([]watched, error) {
	if len(limiters) == 0 {
		return nil, &ConfigError{Field: "limiters", Reason: "there are none"}
	}
	list := make([]watched, len(limiters))
	seen := map[string]bool{}
	for i, l := range limiters {
		if isNil(l) {
			return nil, &ConfigError{Field: "limiters", Reason: fmt.Sprintf("number %d is nil", i)}
		}
		name := strings.ToValidUTF8(l.Name(), "\uFFFD") // exporters drop what else is in the same message
		if seen[name] {
			return nil, &ConfigError{Field: "limiters", Reason: fmt.Sprintf("two have the name %q", name)}
		}
		seen[name] = true
		list[i] = watched{l, attribute.String("limiter", name)}
	}
	return list, nil
}

// observe reads the statistics once, so that all points are of one instant.
func (w watched) observe(o metric.Observer, instruments []instrument) {
	s := w.Stats()
	for i, e := range entries {
		for _, p := range e.read(&s) {
			instruments[i].observe(o, p, metric.WithAttributes(append(p.attrs, w.name)...))
		}
	}
}

// isNil also finds a nil pointer in an interface.
func isNil(v any) bool {
	rv := reflect.ValueOf(v)
	return !rv.IsValid() || rv.Kind() == reflect.Pointer && rv.IsNil()
}
