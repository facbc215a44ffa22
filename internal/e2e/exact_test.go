package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// pair starts two processes that share a limit, or, without a server, have it
// each for itself. What is tested is the exact count, so the remote time-out is
// far beyond any hiccup of the machine: an outage is another test.
func pair(t *testing.T, limit hybrid.Limit, addr string) []*process {
	t.Helper()
	ps := []*process{startProcess(t), startProcess(t)}
	for _, p := range ps {
		order[Nothing](p, "Open", Setup{
			ID: "it", Addr: addr, Name: "exact", Limit: limit.String(),
			Horizon: time.Second, Timeout: 2 * time.Second,
		})
	}
	return ps
}

// burst makes requests for each key in both processes, count each.
func burst(ps []*process, keys []string, count int, at int64, spread time.Duration) map[string][]Call {
	o := BurstOrder{ID: "it", Keys: keys, Count: count, At: at, Spread: spread}
	calls := together(ps, func(_ int, p *process) []Call { return order[[]Call](p, "Burst", o) })
	byKey := map[string][]Call{}
	for _, c := range calls {
		byKey[c.Key] = append(byKey[c.Key], c)
	}
	return byKey
}

// headStart is for an order to reach the workers before its instant.
const headStart = 2 * time.Millisecond

// wantExactly checks one repetition.
func wantExactly(t *testing.T, want int, calls []Call, requests int) {
	t.Helper()
	if len(calls) != requests {
		t.Fatalf("%d calls were made, want %d", len(calls), requests)
	}
	if got := admitted(calls); got != want {
		t.Errorf("%q: %d of %d concurrent requests passed, want %d: %+v", calls[0].Key, got, requests, want, calls)
	}
	if n := decidedBy(calls, hybrid.SourceDegraded); n > 0 {
		t.Errorf("%q: %d decisions without Redis, want none", calls[0].Key, n)
	}
}

func TestTwoProcessesAdmitExactlyTheLimit(t *testing.T) {
	ps := pair(t, hybrid.PerMinute(5), redistest.Server(t).Addr())
	for i := range 200 {
		key := fmt.Sprint("key", i)
		wantExactly(t, 5, burst(ps, []string{key}, 5, stamp()+int64(headStart), 0)[key], 10)
	}
}

func TestTwoProcessesAdmitExactlyTheLimitOfACrowd(t *testing.T) {
	ps := pair(t, hybrid.PerMinute(5), redistest.Server(t).Addr())
	for i := range normally(20, 200) {
		key := fmt.Sprint("key", i)
		wantExactly(t, 5, burst(ps, []string{key}, 125, stamp()+int64(headStart), 0)[key], 250)
	}
}

// The control: what the tests above are about is not the test's own doing.
func TestPerProcessLimitersAdmitTheLimitTwice(t *testing.T) {
	ps := pair(t, hybrid.PerMinute(5), "")
	for i := range 200 {
		key := fmt.Sprint("key", i)
		wantExactly(t, 10, burst(ps, []string{key}, 5, stamp()+int64(headStart), 0)[key], 10)
	}
}

// A bucket of 5 per second gains a token after 200 ms: whoever makes ten
// requests within that time gets five. If the machine took longer, the time is
// worth so much more, and the repetition is made again.
func TestTwoProcessesAdmitExactlyTheLimitOfASecond(t *testing.T) {
	ps := pair(t, hybrid.PerSecond(5), redistest.Server(t).Addr())
	exact := 0
	for i := 0; exact < 200; i++ {
		if i == 1000 {
			t.Fatalf("only %d of %d repetitions were over in time", exact, i)
		}
		key := fmt.Sprint("key", i)
		exact += withinASecond(t, burst(ps, []string{key}, 5, stamp()+int64(headStart), 0)[key])
	}
}

// The same with requests before and after the boundary of a second on the clock
// that Redis has: 20 keys in parallel, whose ten requests each come within
// 120 ms around it.
func TestASecondsBoundaryAdmitsNothingMore(t *testing.T) {
	const (
		keys   = 20
		rounds = 50
	)
	ps := pair(t, hybrid.PerSecond(5), redistest.Server(t).Addr())
	exact := 0
	for i := 0; exact < normally(40, 200); i++ {
		if i == rounds {
			t.Fatalf("only %d of %d repetitions straddled a boundary and were over in time", exact, i*keys)
		}
		names := make([]string, keys)
		for k := range names {
			names[k] = fmt.Sprintf("key%d/%d", i, k)
		}
		now := time.Now()
		boundary := now.Truncate(time.Second).Add(time.Second)
		if boundary.Sub(now) < 100*time.Millisecond {
			boundary = boundary.Add(time.Second)
		}
		// The boundary is one of the wall clock; stamps may have left it since.
		at := stamp() + int64(time.Until(boundary))
		for _, calls := range burst(ps, names, 5, at, 120*time.Millisecond) {
			before, after := 0, 0
			for _, c := range calls {
				if c.End < at {
					before++
				}
				if c.Start >= at {
					after++
				}
			}
			if n := withinASecond(t, calls); before > 0 && after > 0 {
				exact += n
			}
		}
	}
}

// withinASecond checks ten requests under 5 per second and returns 1 if they
// were exactly countable.
func withinASecond(t *testing.T, calls []Call) int {
	t.Helper()
	const refill = 200 * time.Millisecond
	if len(calls) != 10 {
		t.Fatalf("%d calls were made, want 10", len(calls))
	}
	w := span(calls)
	if w < refill {
		wantExactly(t, 5, calls, 10)
		return 1
	}
	if got, most := admitted(calls), 5+int(w/refill); got > most {
		t.Errorf("%q: %d requests passed within %v, want %d at most", calls[0].Key, got, w, most)
	}
	return 0
}
