package hybrid_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// A book says the limits of keys and counts how often it is asked.
type book struct {
	mu    sync.Mutex
	limit map[string]hybrid.Limit
	asked map[string]int
}

func newBook(limits map[string]hybrid.Limit) *book {
	return &book{limit: limits, asked: map[string]int{}}
}

func (b *book) look(key string) hybrid.Limit {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked[key]++
	return b.limit[key]
}

func (b *book) set(key string, limit hybrid.Limit) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limit[key] = limit
}

func (b *book) times(key string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asked[key]
}

// slow is a limit under which all is decided by Redis, to the token.
var slow = hybrid.PerHour(10)

func TestLimitByKey(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		b := newBook(map[string]hybrid.Limit{
			"five": hybrid.PerHour(5), "large": hybrid.PerHour(500),
			"free": hybrid.Unlimited, "gone": hybrid.Blocked,
		})
		lim := start(t, r, slow, named, hybrid.WithLimitByKey(b.look))
		want(t, "Limit", lim.Limit(), slow)
		want(t, "of five", drain(t, lim, "five"), 5)
		want(t, "limit of five", allowN(t, lim, "five", 1).Limit, hybrid.PerHour(5))
		res := allowN(t, lim, "large", 400)
		want(t, "of large", res.Remaining, 100)
		want(t, "limit of large", res.Limit, hybrid.PerHour(500))
		if _, err := lim.AllowN(t.Context(), "five", 6); !errors.Is(err, hybrid.ErrExceedsBurst) {
			t.Errorf("six of five: %v", err)
		}
		if _, err := lim.AllowN(t.Context(), "large", 501); !errors.Is(err, hybrid.ErrExceedsBurst) {
			t.Errorf("501 of 500: %v", err)
		}
		calls := r.Counts()
		want(t, "of free", allowN(t, lim, "free", 1_000_000), ruled[hybrid.Unlimited])
		want(t, "of gone", allowN(t, lim, "gone", 1), ruled[hybrid.Blocked])
		want(t, "a look at gone", allowN(t, lim, "gone", 0), ruled[hybrid.Blocked])
		want(t, "reset of gone", lim.Reset(t.Context(), "gone"), nil)
		if _, err := lim.Wait(t.Context(), "gone"); !errors.Is(err, hybrid.ErrExceedsBurst) {
			t.Errorf("Wait on a blocked key: %v", err)
		}
		want(t, "calls to Redis", r.Counts(), calls)
	})
}

func TestLimitByKeyIsAskedOnceByManyFirstCallers(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		var asked atomic.Int64
		lim := start(t, r, slow, named, hybrid.WithLimitByKey(func(string) hybrid.Limit {
			asked.Add(1)
			time.Sleep(time.Second) // five horizons
			return hybrid.PerHour(20)
		}))
		var all sync.WaitGroup
		var admitted atomic.Int64
		begun := time.Now()
		for i := range 50 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 10 * time.Millisecond)
				res := allow(t, lim)
				want(t, "limit", res.Limit, hybrid.PerHour(20))
				want(t, "decided when the limit was known", time.Since(begun), time.Second)
				if res.Allowed {
					admitted.Add(1)
				}
			})
		}
		all.Wait()
		want(t, "asked", asked.Load(), 1)
		want(t, "admitted", admitted.Load(), 20)
	})
}

func TestLimitByKeyIsAskedOncePerHorizon(t *testing.T) {
	for _, horizon := range []time.Duration{50 * time.Millisecond, 200 * time.Millisecond} {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			b := newBook(map[string]hybrid.Limit{"k": hybrid.PerHour(5)})
			lim := start(t, r, slow, named, hybrid.WithLimitByKey(b.look), hybrid.WithLeaseHorizon(horizon), hybrid.WithRemoteTimeout(20*time.Millisecond))
			for i := range 100 {
				allow(t, lim)
				want(t, fmt.Sprint("asked after request ", i), b.times("k"), 1+int(time.Duration(i)*10*time.Millisecond/horizon))
				time.Sleep(10 * time.Millisecond)
			}
			time.Sleep(time.Hour)
			before := b.times("k")
			want(t, "nobody asked meanwhile", before, 1+int(990*time.Millisecond/horizon))
			allowN(t, lim, "k", 0) // a look is asking as well
			want(t, "asked for a look", b.times("k"), before+1)
			want(t, "asked for other keys", b.times("other"), 0)
		})
	}
}

func TestLimitByKeyAppliesAfterAHorizon(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		b := newBook(map[string]hybrid.Limit{"k": hybrid.PerHour(5)})
		lim := start(t, r, slow, named, hybrid.WithLimitByKey(b.look))
		allow(t, lim)
		for _, to := range []hybrid.Limit{hybrid.PerHour(4), hybrid.Blocked, hybrid.PerHour(3), hybrid.Unlimited, hybrid.PerHour(2)} {
			before := allow(t, lim).Limit
			b.set("k", to)
			asked := time.Now()
			time.Sleep(200*time.Millisecond - 1)
			want(t, "a moment early", allow(t, lim).Limit, before)
			time.Sleep(time.Until(asked.Add(200 * time.Millisecond)))
			want(t, "after a horizon", allow(t, lim).Limit, to)
		}
		want(t, "the tokens are those of one bucket", drain(t, lim, "k"), 0)
	})
}

// Other instances may still say the lower one, which stands for a lease.
func TestLimitByKeyThatWasRaisedAppliesAfterOneLease(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		b := newBook(map[string]hybrid.Limit{"k": hybrid.PerHour(5)})
		lim := start(t, r, slow, named, hybrid.WithLimitByKey(b.look), hybrid.WithLeaseHorizon(5*time.Second))
		want(t, "the old burst", drain(t, lim, "k"), 5)
		b.set("k", hybrid.PerSecond(1).WithBurst(100))
		time.Sleep(5 * time.Second)
		allow(t, lim) // the first to say so
		time.Sleep(25*time.Second - time.Microsecond)
		want(t, "limit until then", allowN(t, lim, "k", 0).Limit, hybrid.Per(1, 12*time.Minute).WithBurst(5))
		time.Sleep(time.Microsecond)
		want(t, "limit after a lease", allow(t, lim).Limit, hybrid.PerSecond(1).WithBurst(100))
	})
}

// Requests for more than the old burst ask for the new one.
func TestLimitByKeyThatWasRaisedIsSeenByLargeRequests(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		b := newBook(map[string]hybrid.Limit{"k": hybrid.PerHour(5)})
		lim := start(t, r, slow, named, hybrid.WithLimitByKey(b.look))
		if _, err := lim.AllowN(t.Context(), "k", 50); !errors.Is(err, hybrid.ErrExceedsBurst) {
			t.Errorf("50 of five: %v", err)
		}
		b.set("k", hybrid.PerHour(100))
		time.Sleep(200 * time.Millisecond)
		want(t, "50 of a hundred", allowN(t, lim, "k", 50).Allowed, true)
	})
}

// A key that is served from a lease asks when the lease is renewed.
func TestLimitByKeyAppliesToALeaseWithinOneLease(t *testing.T) {
	for _, to := range []hybrid.Limit{hybrid.PerSecond(10), hybrid.Blocked} {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			b := newBook(map[string]hybrid.Limit{"k": hybrid.PerSecond(10_000)})
			lim := start(t, r, slow, named, hybrid.WithLimitByKey(b.look))
			heat(t, lim)
			before, begun := b.times("k"), time.Now()
			every(t, lim, 2000, time.Millisecond, func(hybrid.Result) {})
			if n := b.times("k") - before; n < 2 || n > 10 {
				t.Errorf("asked %d times in %v, want once per horizon at most", n, time.Since(begun))
			}
			b.set("k", to)
			changed := time.Now()
			for allow(t, lim).Limit != to {
				if time.Since(changed) > time.Second {
					t.Fatal("another limit applies after a lease")
				}
				time.Sleep(time.Millisecond)
				settle()
			}
		})
	}
}

func TestLimitByKeyBeyondMaxKeys(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		b := newBook(map[string]hybrid.Limit{
			"held": hybrid.PerSecond(10), "a": hybrid.PerHour(5), "b": hybrid.Blocked, "c": hybrid.Unlimited,
		})
		lim := start(t, r, slow, named, hybrid.WithLimitByKey(b.look), hybrid.WithMaxKeys(1))
		r.Freeze()
		var all sync.WaitGroup
		all.Go(func() { _, _ = lim.Wait(t.Context(), "held") }) // a key that is waited for stays
		settle()
		time.Sleep(10 * time.Millisecond)
		r.Thaw()
		r.Delay(10 * time.Millisecond)
		for i := 1; i <= 3; i++ {
			all.Go(func() { _, _ = lim.WaitN(t.Context(), "held", 10) })
			settle()
			res := allowN(t, lim, "a", 1)
			want(t, "limit beyond", res.Limit, hybrid.PerHour(5))
			want(t, "left beyond", res.Remaining, 5-i)
			want(t, "blocked beyond", allowN(t, lim, "b", 1), ruled[hybrid.Blocked])
			want(t, "unlimited beyond", allowN(t, lim, "c", 100), ruled[hybrid.Unlimited])
			if _, err := lim.AllowN(t.Context(), "a", 6); !errors.Is(err, hybrid.ErrExceedsBurst) {
				t.Errorf("six of five: %v", err)
			}
			want(t, "asked each time", b.times("a"), 2*i)
		}
		want(t, "untracked", lim.Stats().Untracked > 0, true)
		all.Wait()
	})
}
