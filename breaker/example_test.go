package breaker_test

import (
	"errors"
	"fmt"

	"github.com/resilient-go/limiter/breaker"
)

// Five failures in a row open it. Then nothing is asked any more, except by its own
// timer.
func ExampleNew() {
	down := errors.New("connection refused")
	b := breaker.New(breaker.Config{
		Judge: func(err error) breaker.Verdict {
			if err == nil {
				return breaker.Healthy
			}
			return breaker.Failed
		},
		Probe: func() error { return down },
	})
	defer b.Close()
	for range 5 {
		_ = b.Do(func() error { return down })
	}
	fmt.Println(b.Closed(), b.State())
	fmt.Println(b.Do(func() error { return nil }))
	// Output:
	// false open
	// breaker: open
}
