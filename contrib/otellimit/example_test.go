package otellimit_test

import (
	"context"
	"fmt"
	"log"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/resilient-go/limiter/contrib/otellimit"
	"github.com/resilient-go/limiter/hybrid"
)

// A program has a reader that exports; this one is collected by hand.
func ExampleRegister() {
	reader := metric.NewManualReader()
	provider := metric.NewMeterProvider(metric.WithReader(reader))

	rdb := redis.NewUniversalClient(hybrid.RedisOptions("localhost:6379"))
	defer rdb.Close()
	lim, err := hybrid.New(rdb, hybrid.Unlimited, hybrid.WithName("api"), hybrid.WithExpectedInstances(4))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = lim.Close() }()

	unregister, err := otellimit.Register(provider, lim)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = unregister() }()

	for range 3 {
		if _, err := lim.Allow(context.Background(), "user:10001"); err != nil {
			log.Fatal(err)
		}
	}

	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		log.Fatal(err)
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		if m.Name != "resilient_limiter.decisions" {
			continue
		}
		for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
			if p.Value > 0 {
				outcome, _ := p.Attributes.Value("outcome")
				source, _ := p.Attributes.Value("source")
				fmt.Println(p.Value, outcome.AsString(), "by", source.AsString())
			}
		}
	}
	// Output: 3 allowed by rule
}
