package e2e

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// TestStorm runs 20 worker processes on one redis-server, under loads below and
// above three kinds of limits, while workers are killed and replaced or stand still
// for longer than a lease lives, and the network and Redis fail for shorter and for
// longer than a time-out. Each worker writes down every decision at once, so that
// what a dead one had admitted counts. It is checked that
//
//   - what leases and Redis admitted keeps burst + rate·w in every window w, over
//     all workers that ever lived;
//   - what the outage policy admitted keeps the same, in all workers together, but
//     for one token of each;
//   - no request fails, no worker says anything on its standard error, every
//     breaker closes when the faults are over, and the counters of the workers that
//     are left are those of their callers.
//
// A failure names its seed, which fixes the limits, the load and the faults with
// their instants, but not what the machine makes of them:
//
//	LIMITER_SEED=123 go test ./internal/e2e -run TestStorm -v -count=5
func TestStorm(t *testing.T) {
	seed, runs := rand.Uint64()>>1, normally(1, 10)
	if text := os.Getenv("LIMITER_SEED"); text != "" {
		given, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("LIMITER_SEED: %v", err)
		}
		seed, runs = given, 1
	}
	lasts, again := time.Duration(normally(9, 25))*time.Second, 0
	for i := 0; i < runs+again; i++ {
		seed, enough := seed+uint64(i), false
		if !t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { enough = weather(t, newPlan(seed, lasts), lasts) }) {
			t.Fatalf("to repeat this storm: LIMITER_SEED=%d go test ./internal/e2e -run TestStorm -v", seed)
		}
		// A machine that cannot keep up makes one long outage of it.
		if !enough && os.Getenv("LIMITER_SEED") == "" {
			if again++; again > 1+runs/2 {
				t.Fatalf("%d of %d storms tested hardly anything", again, i+1)
			}
		}
	}
}

// weather makes a storm of a plan. It reports whether it was one.
func weather(t *testing.T, p *plan, lasts time.Duration) bool {
	t.Logf("seed %d: %v", p.seed, p)
	s := newStorm(t, p)
	defer func() {
		if t.Failed() {
			for _, line := range s.diary {
				t.Log(line)
			}
		}
	}()
	for _, e := range p.events {
		if e.at < lasts {
			<-until(s.begun + int64(e.at))
			s.note(e.what)
			e.do(s)
		}
	}
	<-until(s.begun + int64(lasts))
	s.mend()
	eventually(t, "all breakers close", s.recovered)
	s.calm()
	return s.books()
}
