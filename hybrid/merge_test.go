package hybrid_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

func TestConcurrentCallersOfOneKeyShareACall(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerHour(1000), hybrid.WithRemoteTimeout(100*time.Millisecond))
		allowN(t, lim, "other", 1) // the script is known
		r.Delay(10 * time.Millisecond)
		before := r.Counts()
		var all sync.WaitGroup
		var slowest atomic.Int64
		for range 500 {
			all.Go(func() {
				d := took(func() {
					if res := allow(t, lim); !res.Allowed || res.Source != hybrid.SourceRedis {
						t.Errorf("%+v", res)
					}
				})
				slowest.Store(max(slowest.Load(), int64(d)))
			})
		}
		all.Wait()
		// The first caller is on its way alone, all others follow together.
		want(t, "calls", r.Counts().Sub(before).EvalSHA, 2)
		want(t, "slowest", time.Duration(slowest.Load()), 20*time.Millisecond)
		want(t, "left", allowN(t, lim, "k", 0).Remaining, 500)
	})
}

func TestMixedSizesAreDecidedInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerHour(10))
		r.Delay(time.Millisecond)
		results := make([]hybrid.Result, 6)
		var all sync.WaitGroup
		for i, n := range []int{1, 4, 4, 3, 1, 1} {
			all.Go(func() { results[i] = allowN(t, lim, "k", n) })
			time.Sleep(time.Microsecond) // in this order
		}
		all.Wait()
		for i, ok := range []bool{true, true, true, false, true, false} {
			want(t, fmt.Sprint("request ", i, " admitted"), results[i].Allowed, ok)
		}
		for i, left := range []int{9, 5, 1, 0, 0, 0} {
			if i != 3 { // it was refused by what the one after it took
				want(t, fmt.Sprint("remaining after request ", i), results[i].Remaining, left)
			}
		}
	})
}

// pipelines counts how a client's commands travel.
type pipelines struct{ single, pipelines, commands atomic.Int64 }

func (p *pipelines) DialHook(next redis.DialHook) redis.DialHook { return next }

func (p *pipelines) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			p.single.Add(1)
		}
		return next(ctx, cmd)
	}
}

func (p *pipelines) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		p.pipelines.Add(1)
		p.commands.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}

func TestDifferentKeysShareAPipeline(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		rdb := r.Client(advised)
		lim := startOn(t, rdb, hybrid.PerHour(5))
		allowN(t, lim, "first", 1) // the script is known
		hook := new(pipelines)
		rdb.AddHook(hook)
		r.Delay(time.Millisecond)
		var all sync.WaitGroup
		for i := range 306 {
			all.Go(func() {
				if res := allowN(t, lim, fmt.Sprint(i), 1); !res.Allowed || res.Remaining != 4 {
					t.Errorf("key %d: %+v", i, res)
				}
			})
		}
		all.Wait()
		// Six travel alone, until as many pipelines are under way; the other 300
		// share three of 100.
		want(t, "calls on their own", hook.single.Load(), 6)
		want(t, "pipelines", hook.pipelines.Load(), 3)
		want(t, "calls in pipelines", hook.commands.Load(), 300)
		if c := r.Counts().Conns; c > 8 {
			t.Errorf("%d connections, want at most 8", c)
		}
	})
}

func TestUnknownScriptIsSentOnce(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerHour(5))
		allow(t, lim)
		want(t, "bodies", r.Counts().Eval, 1)
		r.ScriptFlush()
		before := r.Counts()
		for i := range 5 {
			if res := allowN(t, lim, fmt.Sprint(i), 1); !res.Allowed || res.Source != hybrid.SourceRedis {
				t.Errorf("after a flush: %+v", res)
			}
		}
		want(t, "bodies after a flush", r.Counts().Sub(before).Eval, 1)
		want(t, "bodies counted", lim.Stats().Scripts, 2)
		want(t, "breaker", lim.Stats().Breaker, "closed")
	})
}
