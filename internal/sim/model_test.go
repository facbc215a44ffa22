package sim

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// TestSchedules runs whole fleets through random schedules: random limits, loads
// and faults, each from one seed. For each it checks
//
//   - that what leases and Redis admit keeps the bound in every window, with the
//     additions that books derives, and only for the faults that there were;
//   - that each instance keeps its quota by itself, and its local share;
//   - what is stored, after each script: see rootCheck;
//   - that the fleet works when all faults are over: see live.
//
// A failure names its seed. To play it again, with all that happened in it, and
// with the fewest kinds of faults that it takes:
//
//	LIMITER_SEED=123 go test ./internal/sim -run TestSchedules
func TestSchedules(t *testing.T) {
	if text := os.Getenv("LIMITER_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("LIMITER_SEED: %v", err)
		}
		replay(t, seed)
		return
	}
	n, base := 200, uint64(300_000) // the same each time: a change is tested, not luck
	if full {
		n, base = 10_000, rand.Uint64()>>1
	}
	seen := map[string]int{}
	var (
		mu   sync.Mutex // guards seen, bad and next
		bad  int
		next uint64
	)
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				done := i >= uint64(n) || bad >= 5
				mu.Unlock()
				if done {
					return
				}
				p := newPlan(base + i)
				s := newSchedule(p, nil)
				s.play()
				mu.Lock()
				for what, k := range s.seen {
					seen[what] += k
				}
				if len(s.faults) > 0 {
					bad++
					t.Errorf("%s\n%v\nto play it again: LIMITER_SEED=%d go test ./internal/sim -run TestSchedules", strings.Join(s.faults, "\n"), p, p.seed)
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	t.Log(seen)
	for _, what := range []string{"lease", "redis", "degraded", "refused", "rates", "lumps"} {
		if bad == 0 && seen[what] < 10*n {
			t.Errorf("%d schedules saw %q %d times: %v", n, what, seen[what], seen)
		}
	}
}

// replay plays one schedule with a diary, and then without each kind of fault that
// it does not need to fail.
func replay(t *testing.T, seed uint64) {
	p := newPlan(seed)
	if len(faultsOf(p)) > 0 {
		for _, kind := range kinds {
			if q := p.without(kind); p.has(kind) && len(faultsOf(q)) > 0 {
				p = q
			}
		}
	}
	d := &diary{}
	s := newSchedule(p, d)
	s.play()
	for _, line := range d.lines {
		fmt.Println(line)
	}
	t.Log(p)
	for _, fault := range s.faults {
		t.Error(fault)
	}
}

func faultsOf(p *plan) []string {
	s := newSchedule(p, nil)
	s.play()
	return s.faults
}

// audit closes the books.
func (s *schedule) audit() {
	if over, at := s.books.worst(); over > 0 {
		s.wrong("a window that ends at %v exceeds the bound by %.6f tokens", at, over)
	}
	var rate, burst float64
	for _, l := range s.books.limits {
		rate, burst = max(rate, float64(l.perMinute)/60), max(burst, float64(l.burst))
	}
	// A holder's part follows its demand, up to all of it; that the parts add up is
	// checked at the root.
	part := s.headroom
	if s.share < 1 {
		part = min(part, s.share)
	}
	for _, m := range s.all {
		if over := quota(m.degraded, part*rate, max(1, float64(int(part*burst+1e-9)))); over > 1e-6 {
			s.wrong("instance %d admitted %.6f tokens more than its quota", m.name, over)
		}
		if over := quota(m.shared, s.share*rate, max(1, s.share*burst)); over > 1e-6 && s.share < 1 {
			s.wrong("instance %d admitted %.6f tokens more than its share", m.name, over)
		}
	}
}

func TestScheduleIsTheSameFromTheSameSeed(t *testing.T) {
	for seed := range uint64(5) {
		var sums [2]uint64
		for k := range sums {
			s := newSchedule(newPlan(seed), nil)
			s.play()
			sums[k] = s.sum.Sum64()
		}
		if sums[0] != sums[1] {
			t.Errorf("seed %d gives %x and then %x", seed, sums[0], sums[1])
		}
	}
}
