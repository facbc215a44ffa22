package hybrid_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// TestSchedules runs the whole stack, from the public API down to the scripts,
// through random schedules on fake time: random limits, options and load, while
// a nemesis breaks the server, the network and the instances. Each schedule is
// checked for what the limiter promises:
//
//   - whatever was admitted by a lease or by Redis keeps burst + rate·w in every
//     window w, for each key over all instances, and with a local share s for
//     each instance s·burst + s·rate·w;
//   - no Take lasts longer than the remote time-out, no Close longer than that
//     and 50 ms, and every Wait ends;
//   - each result makes sense by itself, and the counters add up;
//   - when the faults are over, the breaker closes and the limit is used.
//
// The server never loses data here: what that adds to the bound is the matter
// of other tests.
//
// A failure names its seed. To run that schedule alone:
//
//	LIMITER_SEED=123 go test ./hybrid -run TestSchedules -count=10
//
// The seed fixes the set-up, the load and the faults, with their instants. Which
// of two goroutines goes first within one instant is not in it, so repeat it.
func TestSchedules(t *testing.T) {
	base, n := rand.Uint64()>>1, runs(normalSchedules, fullSchedules)
	if text := os.Getenv("LIMITER_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("LIMITER_SEED: %v", err)
		}
		base, n = seed, 1
	}
	for i := range n {
		seed := base + uint64(i)
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) { schedule(t, seed) }) {
			t.Fatalf("to repeat this schedule: LIMITER_SEED=%d go test ./hybrid -run TestSchedules", seed)
		}
	}
}

// Schedules take about a second each with the race detector on two cores.
const (
	normalSchedules = 8
	fullSchedules   = 500
)

// A setUp is what stays the same in a schedule.
type setUp struct {
	limit     hybrid.Limit
	burst     int
	largest   int // request
	usual     int // request
	share     int // twentieths
	instances int
	keys      []string
	timeout   time.Duration
	latency   time.Duration
	advised   bool
	options   []hybrid.Option
	text      string
}

func newSetUp(rnd *rand.Rand) setUp {
	s := setUp{
		instances: 1 + rnd.IntN(4) + rnd.IntN(2)*rnd.IntN(5), // 1 to 8, rather few
		keys:      []string{"a", "b", "c"}[:1+rnd.IntN(3)*rnd.IntN(2)],
		timeout:   []time.Duration{5, 20, 50, 50, 100}[rnd.IntN(5)] * time.Millisecond,
		share:     20,
		advised:   rnd.IntN(5) > 0,
	}
	rate := between(rnd, 3, 5000)
	s.limit = hybrid.PerSecond(int(rate))
	if rnd.IntN(6) == 0 {
		s.limit, rate = hybrid.Per(7, 3*time.Second), 7.0/3
	}
	s.burst = max(1, int(rate*between(rnd, 0.2, 3)))
	s.limit = s.limit.WithBurst(s.burst)
	maxKeys := 100
	switch rnd.IntN(6) {
	case 0, 1:
		s.share = 2 + rnd.IntN(18)
		s.share = min(20, max(s.share, (20+s.burst-1)/s.burst)) // at least one request
	case 2:
		maxKeys = 1
	}
	s.largest = s.burst * s.share / 20
	s.usual = max(1, min(int(rate/400), s.largest/20)) // large limits are used up in larger steps
	s.latency = time.Duration(rnd.Int64N(int64(s.timeout / 8)))
	horizon := time.Duration(between(rnd, 0.020, 1) * float64(time.Second))
	policy := hybrid.OutagePolicy(rnd.IntN(3))
	s.options = []hybrid.Option{
		hybrid.WithName("schedule"), hybrid.WithLogger(silent), hybrid.WithMaxKeys(maxKeys),
		hybrid.WithLeaseHorizon(horizon), hybrid.WithRemoteTimeout(s.timeout),
		hybrid.WithLocalShare(float64(s.share) / 20), hybrid.WithOutagePolicy(policy),
	}
	s.text = fmt.Sprintf("%v, share %d/20, %d instances, %d keys (room for %d), horizon %v, time-out %v, latency %v, policy %d, advised %v",
		s.limit, s.share, s.instances, len(s.keys), maxKeys, horizon, s.timeout, s.latency, policy, s.advised)
	return s
}

// between is random with an even logarithm.
func between(rnd *rand.Rand, low, high float64) float64 {
	return low * math.Pow(high/low, rnd.Float64())
}

// upTo is a random duration below d.
func upTo(rnd *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(rnd.Int64N(int64(max(1, d))))
}

const (
	chaosLasts   = 3 * time.Second
	closedWithin = 5 * time.Second  // the breaker, after the faults
	forgotten    = 26 * time.Second // the longest lease: what dead instances held is free
)

func schedule(t *testing.T, seed uint64) {
	synctest.Test(t, func(t *testing.T) {
		r := redistest.Bubble(t)
		rnd := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t, r, newSetUp(rnd), rand.New(rand.NewPCG(seed, 2)))
		defer func() {
			if t.Failed() {
				t.Log(w.text)
				for _, line := range w.diary {
					t.Log(line)
				}
			}
		}()
		r.Delay(w.latency)

		w.stop = time.Now().Add(chaosLasts)
		for i := range w.slots {
			w.work(i, rand.New(rand.NewPCG(seed, uint64(10+i))))
		}
		for time.Now().Before(w.stop) {
			w.trouble(rnd)
			time.Sleep(upTo(rnd, 300*time.Millisecond))
		}
		w.mend()
		healed := time.Now()
		w.working.Wait()
		time.Sleep(closedWithin - time.Since(healed))
		for i := range w.slots {
			if s := w.at(i).lim.Stats(); s.Breaker != "closed" || s.Degraded {
				t.Errorf("instance %d: breaker %s %v after the faults: %v", i, s.Breaker, time.Since(healed), s.RedisCalls)
			}
		}
		time.Sleep(forgotten)
		w.inUse(t)

		for _, in := range w.all {
			in.end(t, w)
		}
		w.inBound(t)
	})
}

// trouble makes one fault or change.
func (w *world) trouble(rnd *rand.Rand) {
	r, until := w.redis, time.Until(w.stop)
	short, long := upTo(rnd, w.timeout), min(until, upTo(rnd, 1500*time.Millisecond))
	if rnd.IntN(2) == 0 {
		long = min(until, 2*short)
	}
	switch what := rnd.IntN(10); what {
	case 0:
		w.note("slower by %v for %v", short/3, long)
		r.Delay(w.latency + short/3)
		w.pause(rnd, long)
		r.Delay(w.latency)
	case 1:
		d := w.timeout/2 + short
		w.note("as slow as %v for %v", d, long)
		r.Delay(d)
		w.pause(rnd, long)
		r.Delay(w.latency)
	case 2:
		n := 1 + rnd.IntN(5)
		w.note("%d replies lost", n)
		r.DropReplies(n)
	case 3:
		text := []string{"LOADING Redis is loading the dataset in memory", "READONLY You can't write against a read only replica.", "BUSY Redis is busy"}[rnd.IntN(3)]
		n := 1 + rnd.IntN(4)
		w.note("%d times %s", n, text)
		r.FailNext(n, text)
	case 4:
		w.note("partition for %v", long)
		r.Partition()
		w.pause(rnd, long)
		r.Heal()
		r.Delay(w.latency)
	case 5:
		w.note("freeze for %v", long)
		r.Freeze()
		w.pause(rnd, long)
		r.Thaw()
	case 6:
		w.note("scripts flushed")
		r.ScriptFlush()
	case 7:
		if rnd.IntN(2) == 0 {
			long = 0
		}
		w.note("killed for %v", long)
		r.Kill()
		w.pause(rnd, long)
		r.RestartWithData()
	default:
		w.replace(rnd)
	}
}

// pause lets a fault last. Instances come and go meanwhile, too.
func (w *world) pause(rnd *rand.Rand, d time.Duration) {
	before := upTo(rnd, d)
	time.Sleep(before)
	if rnd.IntN(4) == 0 {
		w.replace(rnd)
	}
	time.Sleep(d - before)
}

// mend ends all faults.
func (w *world) mend() {
	w.note("all mended")
	w.redis.Thaw()
	w.redis.Heal()
	w.redis.Delay(w.latency)
}
