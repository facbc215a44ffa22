package hybrid_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/resilient-go/limiter/hybrid"
)

// A limit around any function.
func ExampleDo() {
	lim, stop := newLimiter(hybrid.PerHour(1))
	defer stop()
	report := func(context.Context) (string, error) { return "42 pages", nil }
	for range 2 {
		text, err := hybrid.Do(context.Background(), lim, hybrid.Request{Key: "report", N: 1}, report)
		var limited *hybrid.LimitedError
		if errors.As(err, &limited) { // or errors.Is(err, hybrid.ErrLimited)
			fmt.Println(limited.Key, "again in", limited.Result.RetryAfter.Round(time.Minute))
			continue
		}
		fmt.Println(text, err)
	}
	// Output:
	// 42 pages <nil>
	// report again in 1h0m0s
}

// busy refuses twice. It stands in for a limiter, as in a test.
type busy struct{ asked int }

func (b *busy) Take(context.Context, hybrid.Request) (hybrid.Result, error) {
	b.asked++
	if b.asked <= 2 {
		return hybrid.Result{RetryAfter: time.Millisecond}, nil
	}
	return hybrid.Result{Allowed: true}, nil
}

// A call that comes again when it is told to.
func ExampleRetry() {
	backoff, err := hybrid.NewBackoff(time.Millisecond, 10*time.Millisecond, hybrid.FullJitter)
	if err != nil {
		log.Fatal(err)
	}
	lim := &busy{}
	text, err := hybrid.Retry(context.Background(), lim, hybrid.Request{Key: "partner", N: 1},
		hybrid.Retries{Attempts: 5, Backoff: backoff},
		func(context.Context) (string, error) { return "done", nil })
	fmt.Println(text, err, "asked", lim.asked, "times")
	// Output: done <nil> asked 3 times
}

func ExampleNewBackoff() {
	plain, err := hybrid.NewBackoff(100*time.Millisecond, time.Second, hybrid.NoJitter)
	if err != nil {
		log.Fatal(err)
	}
	for _, try := range []int{0, 1, 2, 3, 99} {
		fmt.Println(plain.Delay(try))
	}
	_, err = hybrid.NewBackoff(time.Minute, time.Second, hybrid.FullJitter)
	fmt.Println(err)
	// Output:
	// 100ms
	// 200ms
	// 400ms
	// 800ms
	// 1s
	// hybrid: NewBackoff: the cap of 1s is below the base of 1m0s
}

// Both limits, and the function that asks for them may wait.
func ExampleCombineWait() {
	users, stop := newLimiter(hybrid.PerSecond(100).WithBurst(1), hybrid.WithName("user"))
	defer stop()
	routes, stopRoutes := newLimiter(hybrid.PerHour(100), hybrid.WithName("route"))
	defer stopRoutes()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for range 3 {
		c, err := hybrid.CombineWait(ctx,
			hybrid.Part{Limiter: users, Request: hybrid.Request{Key: "10001", N: 1}},
			hybrid.Part{Limiter: routes, Request: hybrid.Request{Key: "GET /report", N: 1}})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(c.Allowed)
	}
	// Output:
	// true
	// true
	// true
}

// The refusal as an error names the part that refused.
func ExampleCombined_Err() {
	users, stop := newLimiter(hybrid.PerHour(1), hybrid.WithName("user"))
	defer stop()
	for range 2 {
		c, err := hybrid.Combine(context.Background(),
			hybrid.Part{Limiter: users, Request: hybrid.Request{Key: "10001", N: 1}, Name: "calls of a user"})
		if err != nil {
			log.Fatal(err)
		}
		var limited *hybrid.LimitedError
		if errors.As(c.Err(), &limited) {
			fmt.Println(limited.Part, limited.Key, limited.Result.RetryAfter.Round(time.Minute))
		}
	}
	// Output: calls of a user 10001 1h0m0s
}
