package hybrid_test

import (
	"context"
	"fmt"
	"log"

	"github.com/resilient-go/limiter/hybrid"
)

// Another limit while the program runs. What was used stays used.
func ExampleLimiter_SetLimit() {
	lim, stop := newLimiter(hybrid.PerHour(10))
	defer stop()
	ctx := context.Background()
	if _, err := lim.AllowN(ctx, "acme", 4); err != nil {
		log.Fatal(err)
	}
	fmt.Println(lim.SetLimit(hybrid.PerHour(5)))
	res, err := lim.Allow(ctx, "acme")
	fmt.Println(res.Limit, res.Allowed, res.Remaining, err)
	// Output:
	// <nil>
	// 5/h true 4 <nil>
}

// While instances disagree, the highest version wins, for all of them.
func ExampleLimiter_SetLimitVersion() {
	addr, stop := startRedis()
	defer stop()
	first, stopFirst := limiterOn(addr, hybrid.PerSecond(10), hybrid.WithName("api"), hybrid.WithLimitVersion(1))
	defer stopFirst()
	second, stopSecond := limiterOn(addr, hybrid.PerSecond(10), hybrid.WithName("api"), hybrid.WithLimitVersion(1))
	defer stopSecond()

	if err := first.SetLimitVersion(hybrid.PerSecond(20), 2); err != nil {
		log.Fatal(err)
	}
	for _, lim := range []*hybrid.Limiter{first, second} {
		res, err := lim.Allow(context.Background(), "acme")
		fmt.Println(res.Limit, err)
	}
	// Output:
	// 20/s <nil>
	// 20/s <nil>
}

// Which rule is it that applies?
func ExampleLimiter_RuleFor() {
	rules, err := hybrid.ParseRules(`
		staff  user:staff:*  unlimited
		user   user:*        100/m
	`)
	if err != nil {
		log.Fatal(err)
	}
	lim, stop := newLimiter(hybrid.PerMinute(5), hybrid.WithRules(rules))
	defer stop()
	for _, key := range []string{"user:staff:ann", "user:bob", "ip:192.0.2.1"} {
		rule, ok := lim.RuleFor(key)
		fmt.Printf("%s %t %q\n", key, ok, rule.Name)
	}
	fmt.Println(len(lim.Rules().Rules), "rules")
	// Output:
	// user:staff:ann true "staff"
	// user:bob true "user"
	// ip:192.0.2.1 false ""
	// 2 rules
}

// Rules are plain values: JSON, YAML and others read them.
func ExampleParseRules() {
	_, err := hybrid.ParseRules(`{"rules": [
		{"name": "user", "key": "user:*", "limit": "100/m"},
		{"name": "staff", "key": "user:staff:*", "limit": "unlimited"}
	]}`)
	fmt.Println(err)
	var rules hybrid.RuleSet // or made in the program
	rules.Rules = []hybrid.Rule{{Name: "user", Key: "user:*", Limit: hybrid.PerMinute(100)}}
	fmt.Println(rules.Validate())
	// Output:
	// hybrid: rules: rule 2 (staff), key: rule 1 (user) matches all of these keys first
	// <nil>
}

// See what a limit would do, before it does it.
func ExampleWithShadow() {
	lim, stop := newLimiter(hybrid.PerHour(1), hybrid.WithShadow())
	defer stop()
	for range 2 {
		res, err := lim.Allow(context.Background(), "ann")
		fmt.Println(res.Allowed, res.Shadow, err)
	}
	fmt.Println(lim.Stats().Shadowed, "would have been refused")
	// Output:
	// true false <nil>
	// true true <nil>
	// 1 would have been refused
}

// Low priority leaves half of the bucket to what is important.
func ExampleWithPriorityReserve() {
	lim, stop := newLimiter(hybrid.PerHour(10), hybrid.WithPriorityReserve(0.5))
	defer stop()
	low := hybrid.Request{Key: "acme", N: 5, Priority: hybrid.PriorityLow}
	normal := hybrid.Request{Key: "acme", N: 5}
	for _, r := range []hybrid.Request{low, low, normal} {
		fmt.Println(mustTake(lim, r).Allowed)
	}
	// Output:
	// true
	// false
	// true
}
