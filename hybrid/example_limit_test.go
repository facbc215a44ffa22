package hybrid_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/resilient-go/limiter/hybrid"
)

func ExamplePerSecond() {
	lim, stop := newLimiter(hybrid.PerSecond(100), hybrid.WithName("api"))
	defer stop()
	fmt.Println(lim.Name(), lim.Limit())
	// Output: api 100/s
}

func ExamplePerMinute() {
	fmt.Println(hybrid.PerMinute(30).Count(), "in", hybrid.PerMinute(30).Period())
	// Output: 30 in 1m0s
}

func ExamplePerHour() {
	fmt.Println(hybrid.PerHour(1000) == hybrid.Per(1000, time.Hour))
	// Output: true
}

// Fractions are kept: this is not 2.33 per second.
func ExamplePer() {
	limit := hybrid.Per(7, 3*time.Second)
	fmt.Println(limit, "up to", limit.Burst(), "at once")
	// Output: 7/3s up to 7 at once
}

// Ten per second in the long run, and up to fifty at once after a quiet time.
func ExampleLimit_WithBurst() {
	fmt.Println(hybrid.PerSecond(10).WithBurst(50))
	// Output: 10/s burst 50
}

func ExampleLimit_MarshalText() {
	text, err := hybrid.PerMinute(100).WithBurst(20).MarshalText()
	fmt.Println(string(text), err)
	// Output: 100/m burst 20 <nil>
}

// Limits that are no bucket: Redis is not asked.
func ExampleWithLimitByKey() {
	plans := map[string]hybrid.Limit{
		"acme":    hybrid.PerHour(1000),
		"crawler": hybrid.Blocked,
		"health":  hybrid.Unlimited,
	}
	lim, stop := newLimiter(hybrid.PerHour(10), hybrid.WithLimitByKey(func(tenant string) hybrid.Limit {
		if limit, ok := plans[tenant]; ok { // a map in memory: whoever asks waits for this function
			return limit
		}
		return hybrid.PerHour(10)
	}))
	defer stop()
	for _, tenant := range []string{"acme", "crawler", "health", "somebody"} {
		res, err := lim.Allow(context.Background(), tenant)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(tenant, res.Allowed, res.Limit, "by", res.Source)
	}
	// Output:
	// acme true 1000/h by redis
	// crawler false blocked by rule
	// health true unlimited by rule
	// somebody true 10/h by redis
}

// Two limits for each key: ten per second, and twelve per hour.
func ExampleWithTiers() {
	lim, stop := newLimiter(hybrid.PerSecond(10), hybrid.WithTiers(hybrid.PerHour(12)))
	defer stop()
	ctx := context.Background()
	first, err := lim.AllowN(ctx, "user:10001", 10)
	if err != nil {
		log.Fatal(err)
	}
	second, err := lim.AllowN(ctx, "user:10001", 5) // two are left of the hour
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(first.Allowed, first.Remaining)
	fmt.Println(second.Allowed, second.RetryAfter.Round(time.Minute))
	// Output:
	// true 0
	// false 15m0s
}

// Exactly three in every hour, wherever the hour begins.
func ExampleWithAlgorithm() {
	lim, stop := newLimiter(hybrid.PerHour(3), hybrid.WithAlgorithm(hybrid.SlidingLog))
	defer stop()
	for range 4 {
		res, err := lim.Allow(context.Background(), "user:10001")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(res.Allowed, res.RetryAfter.Round(time.Minute))
	}
	// Output:
	// true 0s
	// true 0s
	// true 0s
	// false 1h0m0s
}
