package otellimit

import "go.opentelemetry.io/otel/metric"

// A kind is what an instrument's values mean.
type kind uint8

const (
	// total only grows; instances are added up.
	total kind = iota
	// amount is total with fractions.
	amount
	// level goes up and down; instances are added up.
	level
	// reading goes up and down, and adding it up makes no sense.
	reading
	// age is reading with fractions.
	age
)

// An instrument is one of the five; the others are nil.
type instrument struct {
	total   metric.Int64ObservableCounter
	amount  metric.Float64ObservableCounter
	level   metric.Int64ObservableUpDownCounter
	reading metric.Int64ObservableGauge
	age     metric.Float64ObservableGauge
}

// instrument makes the instrument of an entry.
func (e entry) instrument(m metric.Meter) (i instrument, err error) {
	name, text, unit := "resilient_limiter."+e.name, metric.WithDescription(e.text), metric.WithUnit(e.unit)
	switch e.kind {
	case total:
		i.total, err = m.Int64ObservableCounter(name, text, unit)
	case amount:
		i.amount, err = m.Float64ObservableCounter(name, text, unit)
	case level:
		i.level, err = m.Int64ObservableUpDownCounter(name, text, unit)
	case reading:
		i.reading, err = m.Int64ObservableGauge(name, text, unit)
	case age:
		i.age, err = m.Float64ObservableGauge(name, text, unit)
	}
	return i, err
}

func (i instrument) observable() metric.Observable {
	switch {
	case i.total != nil:
		return i.total
	case i.amount != nil:
		return i.amount
	case i.level != nil:
		return i.level
	case i.age != nil:
		return i.age
	default:
		return i.reading
	}
}

func (i instrument) observe(o metric.Observer, p point, attrs metric.ObserveOption) {
	switch {
	case i.total != nil:
		o.ObserveInt64(i.total, p.whole, attrs)
	case i.amount != nil:
		o.ObserveFloat64(i.amount, p.part, attrs)
	case i.level != nil:
		o.ObserveInt64(i.level, p.whole, attrs)
	case i.age != nil:
		o.ObserveFloat64(i.age, p.part, attrs)
	default:
		o.ObserveInt64(i.reading, p.whole, attrs)
	}
}
