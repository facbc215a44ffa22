// Package promlimit shows rate limiters to Prometheus.
//
// [NewCollector] makes a [prometheus.Collector] of one limiter:
//
//	prometheus.MustRegister(promlimit.NewCollector(lim))
//
// Everything is read from [hybrid.Limiter.Stats] when Prometheus scrapes, so a
// decision costs nothing more. Reading visits every key that the limiter
// remembers, about a millisecond for 100,000 of them: scrape every few seconds, not
// every few milliseconds.
//
// All names begin with "resilient_limiter_" and all series have the label
// "limiter", which is the name of [hybrid.WithName]. Keys never become labels: the
// number of series of a limiter is fixed, 179.
//
// Limiters of different names live side by side in one registry, whoever
// registers them. A second limiter of the same name in one registry is refused with
// a [prometheus.AlreadyRegisteredError]: the two would be told apart by nothing.
// Where both are wanted, give each a label of its own with
// [prometheus.WrapRegistererWith]. [prometheus.Registerer]'s Unregister takes a
// limiter away again; one that was closed may stay and keeps its last numbers.
//
// The repository holds alert rules in contrib/prometheus, a dashboard in
// contrib/grafana, and what each metric and alert means in docs/metrics.md.
package promlimit
