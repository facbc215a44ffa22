package hybrid_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

func TestCloseGivesTokensBack(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		limit := hybrid.PerHour(1).WithBurst(10_000)
		lim, next := start(t, r, limit), start(t, r, limit)
		every(t, lim, 1000, time.Millisecond, func(hybrid.Result) {})
		held := 9000 - peek(t, next).Remaining
		want(t, "something is held", held > 10, true)
		d := took(func() {
			if err := lim.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
		want(t, "time", d, 0)
		want(t, "left for the next", peek(t, next).Remaining, 9000)
		want(t, "returned", lim.Stats().TokensReturned, uint64(held))
	})
}

func TestCloseOfManyLeases(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		limit := hybrid.PerHour(1).WithBurst(1000)
		lim, next := start(t, r, limit), start(t, r, limit)
		for range 20 {
			for k := range 50 {
				allowN(t, lim, fmt.Sprint(k), 1)
			}
			time.Sleep(time.Millisecond)
		}
		if err := lim.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		for k := range 50 {
			want(t, "left for the next", allowN(t, next, fmt.Sprint(k), 0).Remaining, 980)
		}
	})
}

func TestCloseIsIdempotentAndConcurrent(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		limit := hybrid.PerHour(1).WithBurst(10_000)
		lim, next := start(t, r, limit), start(t, r, limit)
		warm(t, next)
		r.Delay(3 * time.Millisecond)
		var working sync.WaitGroup
		admitted := new(record)
		for range 20 {
			working.Go(func() {
				for {
					res, err := lim.Allow(t.Context(), "k")
					if errors.Is(err, hybrid.ErrClosed) {
						return
					}
					if err != nil || !res.Allowed || res.Source == hybrid.SourceDegraded {
						t.Errorf("%+v, %v", res, err)
						return
					}
					admitted.add(1)
					time.Sleep(2 * time.Millisecond)
				}
			})
		}
		time.Sleep(500*time.Millisecond + 100*time.Microsecond)
		for range 10 {
			working.Go(func() {
				d := took(func() { want(t, "error of Close", lim.Close(), nil) })
				if d > 6*time.Millisecond+time.Microsecond {
					t.Errorf("Close took %v with a Redis that takes 3ms", d)
				}
			})
		}
		working.Wait()
		want(t, "once more", lim.Close(), nil)
		lost := int(lim.Stats().TokensLost) // charged for those who left with Close
		want(t, "left for the next", peek(t, next).Remaining, 10_000-admitted.total()-lost)
	})
}

func TestCallsAfterCloseGetErrClosed(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(1000))
		every(t, lim, 500, time.Millisecond, func(hybrid.Result) {})
		want(t, "before", allow(t, lim).Source, hybrid.SourceLease)
		if err := lim.Close(); err != nil {
			t.Fatal(err)
		}
		calls := r.Counts()
		for name, err := range map[string]error{
			"Allow of a leased key": second(lim.Allow(t.Context(), "k")),
			"Allow":                 second(lim.Allow(t.Context(), "other")),
			"AllowN of 0":           second(lim.AllowN(t.Context(), "k", 0)),
			"Take":                  second(lim.Take(t.Context(), hybrid.Request{Key: "k", N: 2})),
			"Wait":                  second(lim.Wait(t.Context(), "k")),
			"Peek":                  second(lim.Peek(t.Context(), "k")),
			"Reset":                 lim.Reset(t.Context(), "k"),
		} {
			if !errors.Is(err, hybrid.ErrClosed) {
				t.Errorf("%s: %v, want ErrClosed", name, err)
			}
		}
		want(t, "calls", r.Counts().Sub(calls), redistest.Counts{})
		want(t, "Stats still tell", lim.Stats().Allowed[hybrid.SourceLease] > 400, true)
	})
}

// TestCloseWithAFrozenRedisIsBounded: with the recommended client everything
// lets go; what could not be given back is told.
func TestCloseWithAFrozenRedisIsBounded(t *testing.T) {
	for _, timeout := range []time.Duration{5 * time.Millisecond, 50 * time.Millisecond, 400 * time.Millisecond} {
		for _, client := range []struct {
			name    string
			options func(*redis.Options)
			stuck   bool
		}{
			{"advised", advised, false},
			{"default", func(*redis.Options) {}, true},
		} {
			bubble(t, func(t *testing.T, r *redistest.Mini) {
				limit := hybrid.PerHour(1).WithBurst(10_000)
				lim := startOn(t, r.Client(client.options), limit, hybrid.WithRemoteTimeout(timeout))
				every(t, lim, 1000, time.Millisecond, func(hybrid.Result) {})
				s := lim.Stats()
				held := s.TokensGranted - s.Allowed[hybrid.SourceLease]
				r.Freeze()
				var err error
				d := took(func() { err = lim.Close() })
				if d > timeout+50*time.Millisecond {
					t.Errorf("%s client: Close took %v with a time-out of %v", client.name, d, timeout)
				}
				var left *hybrid.CloseError
				if !errors.As(err, &left) {
					t.Fatalf("%s client: %v, want a *CloseError", client.name, err)
				}
				want(t, client.name+" client: tokens not given back", left.Tokens, int64(held))
				want(t, client.name+" client: calls", left.Calls > 0, client.stuck)
				want(t, "the same error again", lim.Close(), err)
			})
		}
	}
}

func TestCloseWhileCallersWaitForAFrozenRedis(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerHour(10), hybrid.WithOutagePolicy(hybrid.FailClosed))
		allow(t, lim)
		r.Freeze()
		var callers sync.WaitGroup
		for i := range 10 {
			ask := lim.Allow
			if i%2 == 0 {
				ask = lim.Wait
			}
			callers.Go(func() {
				d := took(func() {
					if _, err := ask(t.Context(), "k"); !errors.Is(err, hybrid.ErrClosed) {
						t.Errorf("caller %d: %v", i, err)
					}
				})
				want(t, "time until it is told", d, 10*time.Millisecond)
			})
		}
		time.Sleep(10 * time.Millisecond)
		if d := took(func() { _ = lim.Close() }); d > 100*time.Millisecond {
			t.Errorf("Close took %v", d)
		}
		callers.Wait()
	})
}

func TestCloseInAnOutageIsQuick(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(10))
		r.Kill()
		trip(t, lim)
		time.Sleep(3 * time.Second) // among probes
		d := took(func() { want(t, "error", lim.Close(), nil) })
		want(t, "time", d, 0)
		dials := r.Counts().Dials
		time.Sleep(10 * time.Second)
		want(t, "dials after Close", r.Counts().Dials, dials)
	})
}

func TestUnusedLimiterCloses(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(10))
		want(t, "error", lim.Close(), nil)
		want(t, "dials", r.Counts().Dials, 0)
	})
}

func TestCloseErrorText(t *testing.T) {
	err := &hybrid.CloseError{Calls: 2, Tokens: 30}
	want(t, "text", err.Error(), "hybrid: closed with 2 calls still inside the Redis client and 30 tokens not given back")
}

// cutShort keeps the first announcement of a limiter under way until it is given up.
type cutShort struct {
	key  string
	once sync.Once
	held chan struct{}
}

func (*cutShort) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*cutShort) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (c *cutShort) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) (err error) {
		hold := false
		if slices.Contains(cmd.Args(), any(c.key)) {
			c.once.Do(func() { hold = true })
		}
		if !hold {
			return next(ctx, cmd)
		}
		close(c.held)
		<-ctx.Done()
		cmd.SetErr(ctx.Err())
		return ctx.Err()
	}
}

// A program that ends soon after its first request must not report a fault of Redis.
func TestCloseReportsNothingOfWhatItCutsShort(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		hook := &cutShort{key: "rl:{short}", held: make(chan struct{})}
		rdb := r.Client(advised)
		rdb.AddHook(hook)
		var book logbook
		var told []hybrid.Event
		lim, err := hybrid.New(rdb, hybrid.PerHour(10), hybrid.WithName("short"), hybrid.WithLogger(book.logger()),
			hybrid.WithEvents(func(e hybrid.Event) { told = append(told, e) }))
		if err != nil {
			t.Fatal(err)
		}
		allow(t, lim)
		<-hook.held // the announcement is under way
		if err := lim.Close(); err != nil {
			t.Error(err)
		}
		settle()
		for _, e := range told {
			switch e.(type) {
			case hybrid.Misconfigured, hybrid.Degraded, hybrid.BreakerChanged:
				t.Errorf("told %#v", e)
			}
		}
		for _, line := range book.taken() {
			if strings.Contains(line, "closed") {
				t.Errorf("logged %s", line)
			}
		}
	})
}
