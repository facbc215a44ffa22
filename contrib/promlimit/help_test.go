package promlimit_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/contrib/promlimit"
	"github.com/resilient-go/limiter/hybrid"
)

// start returns a limiter on a client of its own. It is closed with the test.
func start(t *testing.T, r interface {
	Client(...func(*redis.Options)) *redis.Client
}, limit hybrid.Limit, options ...hybrid.Option,
) *hybrid.Limiter {
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
	t.Cleanup(func() { _ = lim.Close() }) // what it left behind is the matter of other tests
	return lim
}

// registry returns a registry of the limiters that checks what they send.
func registry(t *testing.T, limiters ...promlimit.Limiter) *prometheus.Registry {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	for _, l := range limiters {
		if err := reg.Register(promlimit.NewCollector(l)); err != nil {
			t.Fatal(err)
		}
	}
	return reg
}

// gather scrapes once.
func gather(t *testing.T, from prometheus.Gatherer) []*dto.MetricFamily {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// text scrapes once and returns what Prometheus would read.
func text(t *testing.T, from prometheus.Gatherer) string {
	t.Helper()
	var b bytes.Buffer
	for _, f := range gather(t, from) {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// samples scrapes once and returns the values by series.
func samples(t *testing.T, from prometheus.Gatherer) map[string]string {
	t.Helper()
	return flatten(t, gather(t, from))
}

// names are the names of families without the namespace, sorted.
func names(families []*dto.MetricFamily) []string {
	var list []string
	for _, f := range families {
		list = append(list, strings.TrimPrefix(f.GetName(), "resilient_limiter_"))
	}
	slices.Sort(list)
	return list
}

// series is the name of one series of the limiter "api"; labels are sorted.
func series(name string, labels ...string) string {
	pairs := []string{`limiter="api"`}
	for i := 0; i < len(labels); i += 2 {
		pairs = append(pairs, fmt.Sprintf("%s=%q", labels[i], labels[i+1]))
	}
	slices.Sort(pairs)
	return "resilient_limiter_" + name + "{" + strings.Join(pairs, ",") + "}"
}

// want fails the test unless got is what is wanted.
func want[T comparable](t *testing.T, what string, got, wanted T) {
	t.Helper()
	if got != wanted {
		t.Errorf("%s = %v, want %v", what, got, wanted)
	}
}

// label is the value of a metric's label, "" if it has none of the name.
func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}
