package local_test

import (
	"fmt"
	"time"

	"github.com/resilient-go/limiter/local"
)

// Ten permits from Redis, to be spent here without asking.
func ExampleLease() {
	var l local.Lease
	now := int64(0)
	kept, _, _ := l.Report(now) // nothing is held yet
	opens, end := now+int64(500*time.Millisecond), now+int64(time.Second)
	l.Grant(kept, 10, opens, end, 3)

	left, low, ok := l.Take(now, 8)
	fmt.Println(left, low, ok) // so little is left that a renewal is due
	_, _, ok = l.Take(end, 1)
	fmt.Println(ok)
	// Output:
	// 2 true true
	// false
}

// An instance's part in an outage: five per second, up to ten at once, four now.
func ExampleQuota() {
	q := local.NewQuota(5, 10, 4, 0)
	fmt.Println(q.Take(4, 0), q.Take(1, 0), q.RetryAfter(1, 0))
	fmt.Println(q.Tokens(int64(time.Second)))
	// Output:
	// true false 200ms
	// 5
}

// What is granted is charged, and what is held refills nothing.
func ExampleShare() {
	s := local.NewShare(5, 10, 0)
	fmt.Println(s.Take(10), s.Take(1), s.Level())
	s.Hold(10) // not spent yet
	s.Advance(int64(time.Second))
	fmt.Println(s.Level())
	s.Hold(0) // all spent
	s.Advance(2 * int64(time.Second))
	fmt.Println(s.Level())
	// Output:
	// true false 0
	// 0
	// 5
}

// The demand on a key, and how long a lease has to last to cover eight calls.
func ExampleDemand() {
	var d local.Demand
	for i := range int64(100) {
		d.Add(i*int64(100*time.Millisecond), 2, 1) // ten calls a second, for two tokens each
	}
	fmt.Printf("%.0f tokens per second, %.0f a call\n", d.PerSecond(), d.Size())
	fmt.Println(d.Horizon(200*time.Millisecond, 5*time.Second, 8).Round(100 * time.Millisecond))
	// Output:
	// 20 tokens per second, 2 a call
	// 800ms
}

// Seven tokens per three seconds, exactly.
func ExampleRate() {
	r := local.Rate{Num: 7, Den: 3}
	fmt.Println(r.TimeFor(7 * local.Unit))
	fmt.Printf("%.3f per second\n", r.PerSecond())
	// Output:
	// 3s
	// 2.333 per second
}

// A slot is what the table of this example holds.
type slot struct{ name string }

func (s *slot) Retire() bool { return true } // it holds nothing that would have to be given back

// At most two keys are remembered.
func ExampleTable() {
	table := local.NewTable[*slot](2)
	for _, key := range []string{"ann", "bob", "eve"} {
		_, ok := table.GetOrAdd(key, func() *slot { return &slot{key} })
		fmt.Println(key, ok, table.Len())
	}
	fmt.Println(table.Evicted(), "forgotten")
	// Output:
	// ann true 1
	// bob true 2
	// eve true 2
	// 1 forgotten
}
