package hybrid_test

import (
	"context"
	"fmt"
	"log"

	"github.com/resilient-go/limiter/hybrid"
)

// Limits from a file or an environment variable, changed while the program runs.
func ExampleLimiter_SetRules() {
	rules, err := hybrid.ParseRules(`
		search  user:*:search  10/m burst 2
		user    user:*         100/m
	`)
	if err != nil {
		log.Fatal(err)
	}
	lim, stop := newLimiter(hybrid.PerMinute(5), hybrid.WithRules(rules), hybrid.WithName("api"))
	defer stop()
	for _, key := range []string{"user:1:search", "user:1", "ip:192.0.2.1"} {
		res, err := lim.Allow(context.Background(), key)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(key, res.Limit)
	}

	_, err = hybrid.ParseRules(`search user:*:search 10 a minute`)
	fmt.Println(err)
	rules.Rules[0].Limit = hybrid.Blocked
	fmt.Println(lim.SetRules(rules))
	res, err := lim.Allow(context.Background(), "user:1:search")
	fmt.Println(res.Allowed, res.Limit, err)
	// Output:
	// user:1:search 10/m burst 2
	// user:1 100/m
	// ip:192.0.2.1 5/m
	// hybrid: rules: rule 1 (search), limit: "10 a minute": not of the form COUNT/PERIOD [burst BURST]; want for example "100/s" or "1000/1h burst 50"
	// <nil>
	// false blocked <nil>
}
