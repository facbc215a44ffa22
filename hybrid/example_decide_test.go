package hybrid_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/resilient-go/limiter/hybrid"
)

func ExampleLimiter_Allow() {
	lim, stop := newLimiter(hybrid.PerMinute(2))
	defer stop()
	ctx := context.Background()
	for _, key := range []string{"ann", "ann", "ann", "bob"} {
		res, err := lim.Allow(ctx, key)
		if err != nil {
			log.Fatal(err) // a wrong argument, a closed limiter or an ended context, never an outage
		}
		fmt.Println(key, res.Allowed, res.Remaining, res.RetryAfter.Round(time.Second))
	}
	// Output:
	// ann true 1 0s
	// ann true 0 0s
	// ann false 0 30s
	// bob true 1 0s
}

// A request that costs more than others; one that costs more than the burst can
// never pass.
func ExampleLimiter_AllowN() {
	lim, stop := newLimiter(hybrid.PerHour(100))
	defer stop()
	ctx := context.Background()
	res, err := lim.AllowN(ctx, "export", 60)
	fmt.Println(res.Allowed, res.Remaining, err)
	res, err = lim.AllowN(ctx, "export", 60)
	fmt.Println(res.Allowed, res.RetryAfter.Round(time.Minute), err)
	_, err = lim.AllowN(ctx, "export", 101)
	fmt.Println(errors.Is(err, hybrid.ErrExceedsBurst))
	// Output:
	// true 40 <nil>
	// false 12m0s <nil>
	// true
}

// What is unimportant leaves the last share of the bucket to the others.
func ExampleLimiter_Take() {
	lim, stop := newLimiter(hybrid.PerHour(10)) // low priority leaves a fifth alone: two
	defer stop()
	for _, r := range []hybrid.Request{
		{Key: "acme", N: 8, Priority: hybrid.PriorityLow},
		{Key: "acme", N: 1, Priority: hybrid.PriorityLow},
		{Key: "acme", N: 1},
	} {
		res, err := lim.Take(context.Background(), r)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(res.Allowed, "by", res.Source)
	}
	// Output:
	// true by redis
	// false by redis
	// true by redis
}

// A job that takes ten at once waits for its turn, as long as its context lets it.
func ExampleLimiter_WaitN() {
	lim, stop := newLimiter(hybrid.PerSecond(100).WithBurst(10))
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	begun := time.Now()
	for range 2 {
		if _, err := lim.WaitN(ctx, "batch", 10); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("twenty took at least 95 ms:", time.Since(begun) >= 95*time.Millisecond)
	// Output: twenty took at least 95 ms: true
}

// One bucket that is asked for very often.
func ExampleLimiter_Key() {
	lim, stop := newLimiter(hybrid.PerHour(100))
	defer stop()
	partner := lim.Key("partner") // kept, by a package variable or a field
	ctx := context.Background()
	for range 3 {
		if res, err := partner.Allow(ctx); err != nil || !res.Allowed {
			log.Fatal(res, err)
		}
	}
	_, err := partner.AllowN(ctx, 7)
	left, errPeek := partner.Peek(ctx)
	fmt.Println(partner, left.Remaining, errors.Join(err, errPeek))
	// Output: partner 90 <nil>
}

// Peek takes nothing, and Reset gives a key its burst again.
func ExampleLimiter_Peek() {
	lim, stop := newLimiter(hybrid.PerHour(5))
	defer stop()
	ctx := context.Background()
	if _, err := lim.AllowN(ctx, "login:ann", 5); err != nil {
		log.Fatal(err)
	}
	res, err := lim.Peek(ctx, "login:ann")
	fmt.Println(res.Allowed, res.Remaining, res.ResetAfter.Round(time.Minute), err)
	// Output: false 0 1h0m0s <nil>
}

// Somebody has called the help desk.
func ExampleLimiter_Reset() {
	lim, stop := newLimiter(hybrid.PerHour(5))
	defer stop()
	ctx := context.Background()
	if _, err := lim.AllowN(ctx, "login:ann", 5); err != nil {
		log.Fatal(err)
	}
	fmt.Println(lim.Reset(ctx, "login:ann"))
	res, err := lim.Allow(ctx, "login:ann")
	fmt.Println(res.Allowed, res.Remaining, err)
	// Output:
	// <nil>
	// true 4 <nil>
}

// Counters for a page of one's own; promlimit and otellimit export all of them.
func ExampleLimiter_Stats() {
	lim, stop := newLimiter(hybrid.PerHour(2))
	defer stop()
	for range 3 {
		if _, err := lim.Allow(context.Background(), "ann"); err != nil {
			log.Fatal(err)
		}
	}
	s := lim.Stats()
	fmt.Println(s.Allowed[hybrid.SourceRedis], "allowed,", s.Refused[hybrid.SourceRedis], "refused,", s.Keys, "key, breaker", s.Breaker)
	// Output: 2 allowed, 1 refused, 1 key, breaker closed
}

func ExampleLimiter_Close() {
	lim, stop := newLimiter(hybrid.PerHour(2))
	defer stop()
	fmt.Println(lim.Close()) // gives back what is held on lease
	_, err := lim.Allow(context.Background(), "ann")
	fmt.Println(errors.Is(err, hybrid.ErrClosed))
	// Output:
	// <nil>
	// true
}
