package hybrid_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// A world is a schedule under way: a server, and instances in slots.
type world struct {
	setUp
	t       *testing.T
	redis   *redistest.Mini
	begun   time.Time
	stop    time.Time // of the load
	working sync.WaitGroup
	diary   []string // of the faults

	mu    sync.Mutex // guards the slots
	slots []*instance
	all   []*instance // also those that were replaced
}

// An instance is one limiter with a client of its own.
type instance struct {
	lim    *hybrid.Limiter
	rdb    *redis.Client
	ending atomic.Bool // Close was called
	life   context.Context
	die    context.CancelFunc // whoever still waits on an instance without a client leaves

	mu               sync.Mutex // guards what follows
	admitted         map[string][]admission
	allowed, refused map[hybrid.Source]uint64
	spent            int64 // tokens from leases
}

func newWorld(t *testing.T, r *redistest.Mini, s setUp, rnd *rand.Rand) *world {
	w := &world{setUp: s, t: t, redis: r, begun: time.Now(), slots: make([]*instance, s.instances)}
	for i := range w.slots {
		w.put(i)
		time.Sleep(upTo(rnd, time.Millisecond)) // they do not start on one microsecond
	}
	return w
}

func (w *world) note(format string, args ...any) {
	w.diary = append(w.diary, fmt.Sprintf("%v: "+format, append([]any{time.Since(w.begun)}, args...)...))
}

// put starts a new instance in a slot.
func (w *world) put(slot int) {
	client := func(o *redis.Options) {
		if w.advised {
			addr, dialer, pool := o.Addr, o.Dialer, o.PoolSize
			*o = *hybrid.RedisOptionsFor(w.timeout, addr).Simple()
			o.Addr, o.Dialer, o.PoolSize = addr, dialer, pool
			return
		}
		// With them each new connection waits under a mutex for those that others of
		// the client wait on, and fake time stands still while anybody waits so.
		o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	}
	in := &instance{
		rdb: w.redis.Client(client), admitted: map[string][]admission{},
		allowed: map[hybrid.Source]uint64{}, refused: map[hybrid.Source]uint64{},
	}
	in.life, in.die = context.WithCancel(w.t.Context())
	in.lim = startOn(w.t, in.rdb, w.limit, w.options...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slots[slot] = in
	w.all = append(w.all, in)
}

// at is the instance in a slot now.
func (w *world) at(slot int) *instance {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.slots[slot]
}

// replace ends an instance, well or with its client closed under it so that its
// lease dies with it, and starts another one in its place.
func (w *world) replace(rnd *rand.Rand) {
	slot := rnd.IntN(len(w.slots))
	in := w.at(slot)
	if rnd.IntN(2) == 0 {
		w.note("instance %d closes", slot)
		in.close(w)
	} else {
		w.note("instance %d dies", slot)
		_ = in.rdb.Close()
		time.Sleep(upTo(rnd, 2*w.timeout)) // until somebody notices, it is asked
		in.die()
	}
	w.put(slot)
}

// close closes the limiter, in time.
func (in *instance) close(w *world) (unreturned int64) {
	in.ending.Store(true)
	defer in.die()
	var err error
	if d := took(func() { err = in.lim.Close() }); d > w.timeout+50*time.Millisecond {
		w.t.Errorf("Close took %v with a time-out of %v", d, w.timeout)
	}
	var left *hybrid.CloseError
	if errors.As(err, &left) {
		return left.Tokens
	}
	return 0
}

// work starts the callers of a slot. Their demand changes over time.
func (w *world) work(slot int, rnd *rand.Rand) {
	const callers = 3
	for c := range callers + 1 {
		rnd := rand.New(rand.NewPCG(rnd.Uint64(), 0))
		w.working.Go(func() {
			for time.Now().Before(w.stop) {
				times := []float64{0, 0.1, 1, 2, 10, 2 * float64(w.instances)}[rnd.IntN(6)] // of the limit
				pulses := rnd.IntN(4) == 0
				perSecond := times * perSecond(w.limit) / float64(callers*w.instances)
				length := 50*time.Millisecond + upTo(rnd, 800*time.Millisecond)
				if times == 0 {
					time.Sleep(length)
					continue
				}
				key := w.keys[rnd.IntN(len(w.keys))]
				for until := time.Now().Add(length); time.Now().Before(until); {
					n := 1 + rnd.IntN(2*w.usual)
					if rnd.IntN(30) == 0 {
						n = 1 + rnd.IntN(w.largest)
					}
					gap := time.Duration(float64(n) / perSecond * rnd.ExpFloat64() * 1e9)
					calls := 1
					if pulses {
						calls = 1 + rnd.IntN(10)
						gap *= time.Duration(calls)
					}
					for range calls {
						if c == callers {
							w.wait(w.at(slot), key, min(n, w.largest), rnd)
						} else {
							w.take(w.at(slot), key, min(n, w.largest), rnd)
						}
					}
					time.Sleep(min(max(gap, time.Millisecond), length))
				}
			}
		})
	}
}

// take is one Take, now and then with a context that ends early.
func (w *world) take(in *instance, key string, n int, rnd *rand.Rand) {
	ctx, cancel := w.t.Context(), context.CancelFunc(func() {})
	limited := rnd.IntN(8) == 0
	if limited {
		ctx, cancel = context.WithTimeout(ctx, upTo(rnd, w.timeout))
	}
	defer cancel()
	start := time.Now()
	res, err := in.lim.AllowN(ctx, key, n)
	end := time.Now()
	if d := end.Sub(start); d > w.timeout {
		w.t.Errorf("Take took %v with a time-out of %v: %+v, %v", d, w.timeout, res, err)
	}
	switch {
	case err == nil:
		in.count(w, key, n, res, start, end)
	case limited && errors.Is(err, context.DeadlineExceeded):
	case in.ending.Load() && errors.Is(err, hybrid.ErrClosed):
	default:
		w.t.Errorf("AllowN(%q, %d): %v", key, n, err)
	}
}

// wait is one Wait, often with a context that ends early.
func (w *world) wait(in *instance, key string, n int, rnd *rand.Rand) {
	patience := 10 * time.Minute // practically for ever
	limited := rnd.IntN(4) > 0
	if limited {
		patience = upTo(rnd, 1500*time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(in.life, patience)
	defer cancel()
	if rnd.IntN(4) == 0 && limited { // without a deadline that can be seen beforehand
		var quit context.CancelFunc
		ctx, quit = context.WithCancel(in.life)
		defer time.AfterFunc(patience, quit).Stop()
		defer quit()
	}
	start := time.Now()
	res, err := in.lim.WaitN(ctx, key, n)
	switch {
	case err == nil && !res.Allowed:
		w.t.Errorf("WaitN(%q, %d) refuses: %+v", key, n, res)
	case err == nil:
		in.count(w, key, n, res, start, time.Now())
	case limited && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)):
	case in.ending.Load() && errors.Is(err, hybrid.ErrClosed):
	case in.life.Err() != nil && errors.Is(err, context.Canceled):
	default:
		w.t.Errorf("WaitN(%q, %d) after %v: %v", key, n, time.Since(start), err)
	}
}
