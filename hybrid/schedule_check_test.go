package hybrid_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
)

// An admission of n tokens happened at some instant from from to to, in
// nanoseconds.
//
// A permit from a lease is spent in the instant in which the call returns,
// because fake time stands still while anybody works. What Redis admits is taken
// from the root when the script runs: after the call began, before it returned,
// and not earlier than the longest way of a message, which is one time-out in the
// queue of calls and one on the wire. The test cannot see when. So a window counts
// those that surely fall into it, with all of from to to: to take the return for
// the instant would blame the limiter for an answer that travels slowly while the
// root refills.
type admission struct {
	from, to int64
	n        int64
}

// count checks a decision by itself and notes it.
func (in *instance) count(w *world, key string, n int, res hybrid.Result, start, end time.Time) {
	sane := res.Limit == w.limit && res.Remaining >= 0 && res.Remaining <= w.burst &&
		res.Allowed == (res.RetryAfter == 0) && res.RetryAfter >= 0 && res.ResetAfter >= 0
	switch res.Source {
	case hybrid.SourceLease:
		sane = sane && res.Allowed
	case hybrid.SourcePrefilter:
		sane = sane && !res.Allowed && w.share < 20
	case hybrid.SourceDenied:
		sane = sane && !res.Allowed
	case hybrid.SourceRedis, hybrid.SourceDegraded:
	default:
		sane = false
	}
	if !sane {
		w.t.Errorf("%q, %d tokens: %+v", key, n, res)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if !res.Allowed {
		in.refused[res.Source]++
		return
	}
	in.allowed[res.Source]++
	a := admission{n: int64(n), to: int64(end.Sub(w.begun))}
	switch res.Source {
	case hybrid.SourceLease:
		a.from = a.to
		in.spent += a.n
	case hybrid.SourceRedis:
		a.from = max(int64(start.Sub(w.begun)), a.to-2*int64(w.timeout))
	default:
		return // the outage policy admits on its own account
	}
	in.admitted[key] = append(in.admitted[key], a)
}

// end closes the instance and compares its counters with what its callers saw.
func (in *instance) end(t *testing.T, w *world) {
	unreturned := in.close(w)
	s := in.lim.Stats()
	for source := hybrid.SourcePrefilter; source <= hybrid.SourceDegraded; source++ {
		want(t, "admitted by "+source.String(), s.Allowed[source], in.allowed[source])
		want(t, "refused by "+source.String(), s.Refused[source], in.refused[source])
	}
	if int64(s.TokensGranted) != in.spent+int64(s.TokensReturned+s.TokensExpired)+unreturned {
		t.Errorf("granted %d, but spent %d + returned %d + expired %d + left behind %d", s.TokensGranted, in.spent, s.TokensReturned, s.TokensExpired, unreturned)
	}
	want(t, "waiting", s.Waiting, 0)
}

// inBound checks all windows of each key, and of each key on each instance.
func (w *world) inBound(t *testing.T) {
	rate, period := int64(w.limit.Count()), int64(w.limit.Period())
	share, burst := int64(w.share), int64(w.burst)
	for _, key := range w.keys {
		var together []admission
		for i, in := range w.all {
			own := in.admitted[key]
			together = append(together, own...)
			if over := excess(own, rate*share, period*20) - burst*share*period; over > slack(rate*share, period*20) {
				t.Errorf("%q on instance number %d: a window admits %.6f tokens more than its share allows", key, i, float64(over)/float64(period*20))
			}
		}
		if over := excess(together, rate, period) - burst*period; over > slack(rate, period) {
			t.Errorf("%q: a window admits %.6f tokens more than the limit allows", key, float64(over)/float64(period))
		}
	}
}

// slack is what Redis' clock of whole microseconds may be worth, and a
// micro-token.
func slack(num, den int64) int64 { return num*1000 + den/1_000_000 }

// excess is the most that a window admitted beyond the rate num/den, in tokens
// per nanosecond, times den. It is exact.
func excess(all []admission, num, den int64) int64 {
	if len(all) == 0 {
		return 0
	}
	begins := make([]int64, len(all))
	for i, a := range all {
		begins[i] = a.from
	}
	slices.Sort(begins)
	begins = slices.Compact(begins)
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b admission) int { return int(a.to - b.to) })

	// A window that begins at b and ends at e is worth its tokens less num·(e-b). In
	// order of their ends, each admission raises all windows that begin before it.
	v := newWindows(begins, num)
	worst := int64(math.MinInt64)
	for _, a := range all {
		i, _ := slices.BinarySearch(begins, a.from)
		worst = max(worst, v.raise(1, 0, v.size, i+1, a.n*den)-num*a.to)
	}
	return worst
}

// windows is a tree over one number for each beginning of a window. All up to
// some beginning can be raised at once.
type windows struct {
	size      int
	best, add []int64 // below a node; best has add in it
}

func newWindows(begins []int64, num int64) *windows {
	size := 1
	for size < len(begins) {
		size *= 2
	}
	v := &windows{size: size, best: make([]int64, 2*size), add: make([]int64, 2*size)}
	for i, b := range begins {
		v.best[size+i] = num * b
	}
	for node := size - 1; node > 0; node-- {
		v.best[node] = max(v.best[2*node], v.best[2*node+1])
	}
	return v
}

// raise adds to the first n numbers, n > low, and returns the largest of them.
func (v *windows) raise(node, low, high, n int, by int64) int64 {
	if n >= high {
		v.best[node] += by
		v.add[node] += by
		return v.best[node]
	}
	middle := (low + high) / 2
	most := v.raise(2*node, low, middle, min(n, middle), by)
	if n > middle {
		most = max(most, v.raise(2*node+1, middle, high, n, by))
	}
	v.best[node] = max(v.best[2*node], v.best[2*node+1]) + v.add[node]
	return most + v.add[node]
}

// inUse fails the test unless the limit is used under twice the load, on all
// instances together, like one bucket would be: nothing is stuck.
func (w *world) inUse(t *testing.T) {
	part := math.Min(1, float64(w.share*w.instances)/20)
	rate, burst := perSecond(w.limit)*part, float64(w.burst)*part
	n := max(1, min(int(rate/100), w.largest/50))
	full := time.Duration(burst / rate * 1e9) // until the burst is used up
	// Where an instance has few calls, a lease is long, and so it takes until
	// the parts of the rate follow the load; meanwhile some of it lies idle.
	lasts, least := 3*time.Second, 0.9
	if rate/float64(w.instances) < 25 {
		lasts, least = time.Minute, 0.75
	}
	begun := time.Now()
	var (
		mu      sync.Mutex // guards asked
		asked   []time.Time
		working sync.WaitGroup
	)
	for i := range w.slots {
		in, rnd := w.at(i), rand.New(rand.NewPCG(uint64(i), 4))
		working.Go(func() {
			for time.Since(begun) < full+lasts {
				mu.Lock()
				asked = append(asked, time.Now())
				mu.Unlock()
				w.take(in, w.keys[0], n, rnd)
				time.Sleep(time.Duration(float64(n*w.instances) / (2 * rate) * (0.5 + rnd.Float64()) * 1e9))
			}
		})
	}
	working.Wait()

	var used, possible int
	tokens, last := burst, begun
	for _, at := range asked {
		tokens, last = math.Min(burst, tokens+rate*at.Sub(last).Seconds()), at
		if tokens >= float64(n) {
			tokens -= float64(n)
			if at.Sub(begun) >= full {
				possible += n
			}
		}
	}
	for _, in := range w.all {
		for _, a := range in.admitted[w.keys[0]] {
			if a.to >= int64(begun.Add(full).Sub(w.begun)) {
				used += int(a.n)
			}
		}
	}
	if float64(used) < least*float64(possible)-float64(n) {
		t.Errorf("%d tokens were used in %v after all faults, where one bucket allows %d", used, lasts, possible)
	}
}
