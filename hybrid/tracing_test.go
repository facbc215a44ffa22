package hybrid_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// A tracer is a hook of go-redis that keeps what a tracing hook makes spans of.
type tracer struct {
	mu    sync.Mutex
	spans []span
}

// A span is a command, or a pipeline of several.
type span struct {
	name   string // "evalsha", or "pipeline evalsha evalsha"
	keys   []string
	others []string // all arguments but the keys, as text
	err    error
	ctx    context.Context
}

func (h *tracer) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		h.add(span{name: "dial", err: err, ctx: ctx})
		return conn, err
	}
}

func (h *tracer) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		h.add(spanOf(ctx, cmd.Name(), err, cmd))
		return err
	}
}

func (h *tracer) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		name := "pipeline"
		for _, cmd := range cmds {
			name += " " + cmd.Name()
		}
		h.add(spanOf(ctx, name, err, cmds...))
		return err
	}
}

func spanOf(ctx context.Context, name string, err error, cmds ...redis.Cmder) span {
	s := span{name: name, err: err, ctx: ctx}
	for _, cmd := range cmds {
		for i, arg := range cmd.Args() {
			if text := fmt.Sprint(arg); i == 3 && strings.HasPrefix(cmd.Name(), "eval") {
				s.keys = append(s.keys, text)
			} else {
				s.others = append(s.others, text)
			}
		}
	}
	return s
}

// add keeps a span, but not those of go-redis' own greeting of a server.
func (h *tracer) add(s span) {
	if strings.Contains(s.name, "hello") || strings.Contains(s.name, "client") {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.spans = append(h.spans, s)
}

// taken returns the spans since the last time.
func (h *tracer) taken() []span {
	settle()
	h.mu.Lock()
	defer h.mu.Unlock()
	spans := h.spans
	h.spans = nil
	return spans
}

// wantSpans fails the test unless the spans have these names and keys, such as
// "evalsha [rl:{api:k}]".
func wantSpans(t *testing.T, spans []span, wanted ...string) {
	t.Helper()
	var got []string
	for _, s := range spans {
		got = append(got, fmt.Sprint(s.name, " ", s.keys))
	}
	if !slices.Equal(got, wanted) {
		t.Errorf("spans:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(wanted, "\n"))
	}
}

// traced returns a limiter whose Redis calls are seen.
func traced(t *testing.T, r *redistest.Mini, limit hybrid.Limit) (*hybrid.Limiter, *tracer) {
	t.Helper()
	h := new(tracer)
	rdb := r.Client(advised)
	rdb.AddHook(h)
	return startOn(t, rdb, limit, hybrid.WithName("api")), h
}

// TestHooksSeeEveryCall of the limiter to Redis, by the names that spans get, and
// nothing when Redis is not asked.
func TestHooksSeeEveryCall(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim, h := traced(t, r, hybrid.PerMinute(10))
		allowN(t, lim, "k", 1)
		wantSpans(t, h.taken(), "dial []", "evalsha [rl:{api:k}]", "eval [rl:{api:k}]") // the server learns the script
		allowN(t, lim, "k", 1)
		wantSpans(t, h.taken(), "evalsha [rl:{api:k}]")
		peek(t, lim)
		wantSpans(t, h.taken(), "evalsha [rl:{api:k}]", "eval [rl:{api:k}]")
		if err := lim.Reset(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		wantSpans(t, h.taken(), "evalsha [rl:{api:k}]", "eval [rl:{api:k}]")
		allowN(t, lim, "k", 10)
		allowN(t, lim, "k", 1)
		wantSpans(t, h.taken(), "evalsha [rl:{api:k}]", "evalsha [rl:{api:k}]")
		for range 100 { // refused here: Redis has just said no
			allowN(t, lim, "k", 1)
		}
		wantSpans(t, h.taken())
	})
}

// TestHooksSeeFewerCallsThanRequests: a lease covers many.
func TestHooksSeeFewerCallsThanRequests(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim, h := traced(t, r, hybrid.PerSecond(10_000))
		every(t, lim, 2000, time.Millisecond, func(hybrid.Result) {})
		evals, calls := 0, uint64(0)
		for _, s := range h.taken() {
			if strings.HasPrefix(s.name, "eval") {
				evals++
			}
		}
		stats := lim.Stats()
		for _, n := range stats.RedisCalls {
			calls += n
		}
		want(t, "spans, with the bodies of scripts", uint64(evals), calls+stats.Scripts)
		if evals > 2000/20 {
			t.Errorf("%d spans for 2000 requests", evals)
		}
	})
}

// TestHooksSeePipelines: what is asked for many keys at once goes together.
func TestHooksSeePipelines(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim, h := traced(t, r, hybrid.PerMinute(10))
		warm(t, lim)
		r.Delay(5 * time.Millisecond) // all pipelines get busy
		h.taken()
		var asking sync.WaitGroup
		for i := range 40 {
			asking.Go(func() { allowN(t, lim, fmt.Sprint("k", i), 1) })
		}
		asking.Wait()
		var keys []string
		longest := 0
		for _, s := range h.taken() {
			if s.name == "dial" {
				continue
			}
			if want := "pipeline" + strings.Repeat(" evalsha", len(s.keys)); len(s.keys) > 1 && s.name != want || len(s.keys) == 1 && s.name != "evalsha" {
				t.Errorf("the span of %d keys is %q", len(s.keys), s.name)
			}
			keys = append(keys, s.keys...)
			longest = max(longest, len(s.keys))
		}
		slices.Sort(keys)
		want(t, "keys", len(slices.Compact(keys)), 40)
		if longest < 2 {
			t.Error("no pipeline was seen")
		}
	})
}

// TestKeysAreInOnePlaceOfACommand: who leaves the arguments out of spans has no
// user's key in them, errors included.
func TestKeysAreInOnePlaceOfACommand(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim, h := traced(t, r, hybrid.PerMinute(100))
		for _, fault := range []string{"", "WRONGTYPE Operation against a key holding the wrong kind of value", "NOAUTH Authentication required.", "ERR unknown"} {
			r.FailWith(fault)
			for range 20 {
				allowN(t, lim, secret, 1)
				_, _ = lim.Peek(t.Context(), secret)
				_ = lim.Reset(t.Context(), secret)
			}
			r.Heal()
			time.Sleep(time.Minute)
		}
		spans, withKey, failed := h.taken(), 0, 0
		for _, s := range spans {
			if strings.Contains(s.name, "secret") || s.err != nil && strings.Contains(s.err.Error(), "secret") {
				t.Errorf("a key is in %s: %v", s.name, s.err)
			}
			for _, arg := range s.others {
				if strings.Contains(arg, "secret") {
					t.Errorf("a key is in the argument %q of %s", arg, s.name)
				}
			}
			for _, key := range s.keys {
				if strings.Contains(key, secret) {
					withKey++
				}
			}
			if s.err != nil {
				failed++
			}
		}
		if withKey == 0 || failed == 0 {
			t.Errorf("%d commands with the key, %d failed: nothing was tried", withKey, failed)
		}
	})
}

type requestID struct{}

// TestSpansAreNoChildrenOfRequests: a call is made for all who wait, under our own
// time-out. So the caller's context, with its values and its end, is not passed on.
func TestSpansAreNoChildrenOfRequests(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim, h := traced(t, r, hybrid.PerMinute(10))
		warm(t, lim)
		h.taken()
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), requestID{}, "r1"))
		r.Delay(10 * time.Millisecond)
		time.AfterFunc(5*time.Millisecond, cancel)
		begun := time.Now()
		if _, err := lim.Allow(ctx, "k"); err == nil {
			t.Error("the caller had left")
		}
		time.Sleep(time.Second)
		spans := h.taken()
		wantSpans(t, spans, "evalsha [rl:{api:k}]")
		want(t, "value", spans[0].ctx.Value(requestID{}), nil)
		want(t, "error", spans[0].err, nil) // the call went on
		end, ok := spans[0].ctx.Deadline()
		want(t, "has a deadline", ok, true)
		if d := end.Sub(begun); d < hybrid.DefaultRemoteTimeout || d > 10*hybrid.DefaultRemoteTimeout {
			t.Errorf("the deadline is after %v", d)
		}
	})
}

// TestSpansOfAnOutage: failed calls until the breaker opens, then one for each
// probe, whatever the load.
func TestSpansOfAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim, h := traced(t, r, hybrid.PerMinute(10))
		warm(t, lim)
		h.taken()
		r.FailWith("LOADING Redis is loading the dataset in memory")
		trip(t, lim)
		for _, s := range h.taken() {
			if s.name != "dial" && (s.err == nil || !strings.HasPrefix(s.err.Error(), "LOADING")) {
				t.Errorf("%s: %v", s.name, s.err)
			}
		}
		for range 1000 {
			allowN(t, lim, "k", 1)
		}
		wantSpans(t, h.taken())
		for range 1000 {
			time.Sleep(time.Millisecond)
			allowN(t, lim, "k", 1)
		}
		if n := len(h.taken()); n == 0 || n > 20 {
			t.Errorf("%d spans of a second's probes", n)
		}
	})
}
