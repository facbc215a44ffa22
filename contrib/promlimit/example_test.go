package promlimit_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/contrib/promlimit"
	"github.com/resilient-go/limiter/hybrid"
)

func ExampleNewCollector() {
	server, err := miniredis.Run() // stands for your Redis server
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	rdb := redis.NewUniversalClient(hybrid.RedisOptions(server.Addr()))
	defer func() { _ = rdb.Close() }()

	api, err := hybrid.New(rdb, hybrid.PerMinute(2), hybrid.WithName("api"), hybrid.WithExpectedInstances(4))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = api.Close() }()
	login, err := hybrid.New(rdb, hybrid.PerHour(5), hybrid.WithName("login"), hybrid.WithExpectedInstances(4))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = login.Close() }()

	// A service would use prometheus.DefaultRegisterer and promhttp.Handler.
	reg := prometheus.NewRegistry()
	reg.MustRegister(promlimit.NewCollector(api), promlimit.NewCollector(login))
	metrics := httptest.NewServer(promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	defer metrics.Close()

	for range 3 {
		if _, err := api.Allow(context.Background(), "user:10001"); err != nil {
			log.Fatal(err)
		}
	}
	reply, err := http.Get(metrics.URL)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = reply.Body.Close() }()
	body, err := io.ReadAll(reply.Body)
	if err != nil {
		log.Fatal(err)
	}
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, "resilient_limiter_keys{") || strings.HasPrefix(line, "resilient_limiter_degraded{") {
			fmt.Print(line)
		}
	}
	// Output:
	// resilient_limiter_degraded{limiter="api"} 0
	// resilient_limiter_degraded{limiter="login"} 0
	// resilient_limiter_keys{limiter="api"} 1
	// resilient_limiter_keys{limiter="login"} 0
}
