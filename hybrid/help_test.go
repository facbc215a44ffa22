package hybrid_test

import (
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// full reports whether the large counts are asked for.
func full() bool { return os.Getenv("LIMITER_FULL") != "" }

// runs is how often a randomized test repeats.
func runs(normal, large int) int {
	if full() {
		return large
	}
	return normal
}

// bubble runs f on fake time with a Redis of its own.
func bubble(t *testing.T, f func(t *testing.T, r *redistest.Mini)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, redistest.Bubble(t)) })
}

// seeded runs f in a bubble for each of n seeds, which name the subtests.
func seeded(t *testing.T, n int, f func(t *testing.T, r *redistest.Mini, rnd *rand.Rand)) {
	t.Helper()
	base := rand.Uint64()
	for i := range n {
		seed := base + uint64(i)
		ok := t.Run("", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f(t, redistest.Bubble(t), rand.New(rand.NewPCG(seed, 1)))
			})
		})
		if !ok {
			t.Fatalf("failed with the seed %d", seed)
		}
	}
}

// advised gives a client the recommended options.
func advised(o *redis.Options) {
	addr, dialer, pool := o.Addr, o.Dialer, o.PoolSize
	*o = *hybrid.RedisOptions(addr).Simple()
	o.Addr, o.Dialer, o.PoolSize = addr, dialer, pool
}

// silent is the logger of tests that do not look at it.
var silent = slog.New(slog.DiscardHandler)

// start returns a limiter on a client of its own. It is closed with the test.
func start(t testing.TB, r interface {
	Client(...func(*redis.Options)) *redis.Client
}, limit hybrid.Limit, options ...hybrid.Option,
) *hybrid.Limiter {
	t.Helper()
	return startOn(t, r.Client(advised), limit, options...)
}

// startOn is start with a client of the test.
func startOn(t testing.TB, rdb redis.UniversalClient, limit hybrid.Limit, options ...hybrid.Option) *hybrid.Limiter {
	t.Helper()
	options = append([]hybrid.Option{hybrid.WithLogger(silent), hybrid.Unannounced()}, options...)
	lim, err := hybrid.New(rdb, limit, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lim.Close() }) // what it left behind is the matter of other tests
	return lim
}

// allow asks for one token of "k" and fails the test on an error.
func allow(t testing.TB, lim *hybrid.Limiter) hybrid.Result {
	t.Helper()
	return allowN(t, lim, "k", 1)
}

func allowN(t testing.TB, lim *hybrid.Limiter, key string, n int) hybrid.Result {
	t.Helper()
	res, err := lim.AllowN(t.Context(), key, n)
	if err != nil {
		t.Fatalf("AllowN(%q, %d): %v", key, n, err)
	}
	return res
}

// warm makes Redis know all scripts and connects to it.
func warm(t testing.TB, lim *hybrid.Limiter) {
	t.Helper()
	allowN(t, lim, "warm", 1)
	allowN(t, lim, "warm", 0)
	if err := lim.Reset(t.Context(), "warm"); err != nil {
		t.Fatal(err)
	}
}

// drain takes what a key has, one token at a time, and returns how many it were.
func drain(t testing.TB, lim *hybrid.Limiter, key string) int {
	t.Helper()
	for n := 0; ; n++ {
		if !allowN(t, lim, key, 1).Allowed {
			return n
		}
	}
}

// took returns how long f takes.
func took(f func()) time.Duration {
	begun := time.Now()
	f()
	return time.Since(begun)
}

// want fails the test unless got is what is wanted.
func want[T comparable](t testing.TB, what string, got, wanted T) {
	t.Helper()
	if got != wanted {
		t.Errorf("%s = %v, want %v", what, got, wanted)
	}
}

// A record is a list of admissions.
type record struct {
	mu sync.Mutex
	at []time.Time
	n  []int
}

// add notes that n tokens were admitted now.
func (r *record) add(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = append(r.at, time.Now())
	r.n = append(r.n, n)
}

func (r *record) total() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	sum := 0
	for _, n := range r.n {
		sum += n
	}
	return sum
}

// excess is the most that was admitted in any window beyond what the rate is
// worth in it. It must not be above the burst.
func (r *record) excess(perSecond float64) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	worst, before, least := 0.0, 0.0, math.Inf(1)
	for i, n := range r.n {
		worth := perSecond * r.at[i].Sub(r.at[0]).Seconds()
		least = math.Min(least, before-worth)
		before += float64(n)
		worst = math.Max(worst, before-worth-least)
	}
	return worst
}

// inBound fails the test unless the record keeps burst + rate·w in all windows.
// Redis counts whole microseconds: one of them may be worth a little.
func (r *record) inBound(t testing.TB, perSecond, burst float64) {
	t.Helper()
	if x := r.excess(perSecond); x > burst+perSecond*1e-6+1e-6 {
		t.Errorf("some window admitted %.6f more than its rate, want at most %v", x, burst)
	}
}

// perSecond is the rate of a limit.
func perSecond(l hybrid.Limit) float64 { return float64(l.Count()) / l.Period().Seconds() }

// settle lets everything that can happen now happen.
func settle() { synctest.Wait() }
