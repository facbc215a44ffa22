package promlimit

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/resilient-go/limiter/hybrid"
)

// namespace begins the name of each metric.
const namespace = "resilient_limiter"

// A Limiter is what a collector reads. A [*hybrid.Limiter] is one.
type Limiter interface {
	// Name becomes the label "limiter".
	Name() string
	// Stats is called once per scrape, by several scrapes at once.
	Stats() hybrid.Stats
}

// NewCollector returns a collector of one limiter. It asks for the limiter's name
// now and for its stats at each scrape, and keeps nothing in between. Registering a
// second one of the same name fails with a [prometheus.AlreadyRegisteredError].
func NewCollector(l Limiter) prometheus.Collector {
	// A name may hold any bytes, a label only valid text.
	labels := prometheus.Labels{"limiter": strings.ToValidUTF8(l.Name(), "\uFFFD")}
	c := &collector{limiter: l, descs: make([]*prometheus.Desc, len(families))}
	for i, f := range families {
		name := prometheus.BuildFQName(namespace, "", f.name)
		c.descs[i] = prometheus.NewDesc(name, f.help, f.labels, labels)
	}
	return c
}

// A collector has one description for each of families.
type collector struct {
	limiter Limiter
	descs   []*prometheus.Desc
}

// Describe implements [prometheus.Collector].
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	s := c.limiter.Stats()
	for i, f := range families {
		f.read(&s, sink{c.descs[i], ch})
	}
}

// A sink takes the samples of one family.
type sink struct {
	desc *prometheus.Desc
	ch   chan<- prometheus.Metric
}

func (to sink) counter(n uint64, labels ...string) {
	to.send(prometheus.CounterValue, float64(n), labels)
}

func (to sink) seconds(s float64) { to.send(prometheus.CounterValue, s, nil) }

// length is a gauge in seconds.
func (to sink) length(d time.Duration) { to.send(prometheus.GaugeValue, d.Seconds(), nil) }

func (to sink) gauge(n int64, labels ...string) { to.send(prometheus.GaugeValue, float64(n), labels) }

// flag is a gauge of 0 or 1.
func (to sink) flag(set bool, labels ...string) {
	n := int64(0)
	if set {
		n = 1
	}
	to.gauge(n, labels...)
}

func (to sink) send(kind prometheus.ValueType, value float64, labels []string) {
	to.ch <- prometheus.MustNewConstMetric(to.desc, kind, value, labels...)
}

// histogram sends counts by range as Prometheus has them: each bucket holds those
// below as well, and the one without a bound is the number of all.
func (to sink) histogram(h hybrid.Histogram, labels ...string) {
	buckets, count := make(map[float64]uint64, len(h.Bounds)), uint64(0)
	for i, n := range h.Counts {
		count += n
		if i < len(h.Bounds) {
			buckets[h.Bounds[i]] = count
		}
	}
	to.ch <- prometheus.MustNewConstHistogram(to.desc, count, h.Sum, buckets, labels...)
}
