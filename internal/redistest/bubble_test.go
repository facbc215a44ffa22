package redistest_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/internal/redistest"
)

var incr = redis.NewScript(`return redis.call("INCR", KEYS[1])`)

// plain makes each command one attempt with a short time-out.
func plain(o *redis.Options) {
	o.MaxRetries = -1
	o.DialerRetries = 1
	o.ReadTimeout = 50 * time.Millisecond
	o.DialTimeout = 80 * time.Millisecond
}

// took returns how long f takes.
func took(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

func isTimeout(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

func inBubble(t *testing.T, f func(t *testing.T, r *redistest.Mini, c *redis.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := redistest.Bubble(t)
		f(t, r, r.Client(plain))
	})
}

func TestBubbleClock(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Mini, c *redis.Client) {
		ctx := t.Context()
		if err := c.Set(ctx, "key", "v", 5*time.Second).Err(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5*time.Second - time.Nanosecond)
		if n := c.Exists(ctx, "key").Val(); n != 1 {
			t.Error("the key is gone before its time")
		}
		time.Sleep(time.Nanosecond)
		if n := c.Exists(ctx, "key").Val(); n != 0 {
			t.Error("the key is still there after its time")
		}

		server, err := c.Time(ctx).Result()
		if err != nil || !server.Equal(time.Now()) {
			t.Errorf("TIME = %v, %v, want %v", server, err, time.Now())
		}
		time.Sleep(90 * time.Minute)
		inScript, err := c.Eval(ctx, `return redis.call("TIME")`, nil).StringSlice()
		if want := time.Now().Unix(); err != nil || inScript[0] != itoa(want) {
			t.Errorf("TIME in a script = %v, %v, want %d s", inScript, err, want)
		}
	})
}

func TestBubbleFreeze(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Mini, c *redis.Client) {
		ctx := t.Context()
		if err := incr.Run(ctx, c, []string{"n"}).Err(); err != nil {
			t.Fatal(err)
		}
		before := r.Counts()

		r.Freeze()
		var err error
		d := took(func() { err = incr.Run(ctx, c, []string{"n"}).Err() })
		if d != 50*time.Millisecond || !isTimeout(err) {
			t.Errorf("on an open connection: %v after %v", err, d)
		}
		d = took(func() { err = c.Get(ctx, "n").Err() })
		if d != 50*time.Millisecond || !isTimeout(err) {
			t.Errorf("on a new connection: %v after %v", err, d)
		}
		want := redistest.Counts{Dials: 1, Conns: 1, EvalSHA: 1}
		if got := r.Counts().Sub(before); got != want {
			t.Errorf("while frozen: %+v, want %+v", got, want)
		}

		// What the client gave up is executed all the same.
		r.Thaw()
		synctest.Wait()
		if got := r.Counts().Sub(before).Runs; got != 1 {
			t.Errorf("after the thaw the server ran %d scripts, want 1", got)
		}
		if v := c.Get(ctx, "n").Val(); v != "2" {
			t.Errorf("n = %q, want 2", v)
		}
	})
}

func TestBubbleThawAnswers(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Mini, c *redis.Client) {
		r.Freeze()
		time.AfterFunc(30*time.Millisecond, r.Thaw)
		var err error
		d := took(func() { err = c.Ping(t.Context()).Err() })
		if d != 30*time.Millisecond || err != nil {
			t.Errorf("PING = %v after %v, want no error after 30ms", err, d)
		}
	})
}

func TestBubblePartition(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Mini, c *redis.Client) {
		ctx := t.Context()
		r.Partition()
		var err error
		d := took(func() { err = c.Ping(ctx).Err() })
		if d != 80*time.Millisecond || !isTimeout(err) {
			t.Errorf("dial: %v after %v, want a time-out after 80ms", err, d)
		}
		r.Heal()
		if err := incr.Run(ctx, c, []string{"n"}).Err(); err != nil {
			t.Fatal(err)
		}

		// A reply on its way is held up as well.
		r.Delay(20 * time.Millisecond)
		time.AfterFunc(10*time.Millisecond, r.Partition)
		time.AfterFunc(45*time.Millisecond, r.Heal)
		d = took(func() { err = incr.Run(ctx, c, []string{"n"}).Err() })
		if d != 45*time.Millisecond || err != nil {
			t.Errorf("EVALSHA = %v after %v, want no error after 45ms", err, d)
		}
		if got := r.Counts().Runs; got != 2 {
			t.Errorf("the server ran %d scripts, want 2", got)
		}

		r.Partition() // hung dials must not outlive the test
	})
}

func TestBubbleKill(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Mini, c *redis.Client) {
		ctx := t.Context()
		if err := incr.Run(ctx, c, []string{"n"}).Err(); err != nil {
			t.Fatal(err)
		}
		if err := c.Set(ctx, "short", "v", time.Second).Err(); err != nil {
			t.Fatal(err)
		}

		r.Kill()
		before := r.Counts()
		var err error
		d := took(func() { err = c.Get(ctx, "n").Err() })
		if d != 0 || !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("killed: %v after %v, want refused at once", err, d)
		}
		want := redistest.Counts{Dials: 1}
		if got := r.Counts().Sub(before); got != want {
			t.Errorf("killed: %+v, want %+v", got, want)
		}

		time.Sleep(time.Second)
		r.RestartWithData()
		if v, err := c.Get(ctx, "n").Result(); v != "1" || err != nil {
			t.Errorf("restarted with data: n = %q, %v", v, err)
		}
		if n := c.Exists(ctx, "short").Val(); n != 0 {
			t.Error("a key outlived its time while the server was down")
		}
		if err := incr.EvalSha(ctx, c, []string{"n"}).Err(); !redis.HasErrorPrefix(err, "NOSCRIPT") {
			t.Errorf("EVALSHA after the restart: %v, want NOSCRIPT", err)
		}

		r.RestartEmpty() // of a running server, with a connection in the pool
		if err := c.Get(ctx, "n").Err(); !errors.Is(err, redis.Nil) {
			t.Errorf("restarted empty: %v, want redis.Nil", err)
		}
	})
}

func TestBubbleKillBreaksConnections(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Mini, c *redis.Client) {
		ctx := t.Context()
		if err := c.Ping(ctx).Err(); err != nil {
			t.Fatal(err)
		}
		r.Freeze()
		time.AfterFunc(20*time.Millisecond, r.Kill)
		var err error
		d := took(func() { err = c.Ping(ctx).Err() })
		if d != 20*time.Millisecond || !errors.Is(err, io.EOF) {
			t.Errorf("%v after %v, want EOF after 20ms", err, d)
		}
		r.RestartEmpty()
		if err := c.Ping(ctx).Err(); err != nil {
			t.Errorf("a restarted server is not frozen, but PING = %v", err)
		}
	})
}

func TestBubbleDelay(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Mini, c *redis.Client) {
		ctx := t.Context()
		if err := incr.Load(ctx, c).Err(); err != nil {
			t.Fatal(err)
		}
		r.Delay(40 * time.Millisecond)
		if d := took(func() { c.Ping(ctx) }); d != 40*time.Millisecond {
			t.Errorf("PING took %v, want 40ms", d)
		}
		r.Delay(60 * time.Millisecond)
		var err error
		d := took(func() { err = incr.EvalSha(ctx, c, []string{"n"}).Err() })
		if d != 50*time.Millisecond || !isTimeout(err) {
			t.Errorf("EVALSHA: %v after %v, want a time-out after 50ms", err, d)
		}
		if got := r.Counts().Runs; got != 1 {
			t.Errorf("the server ran %d scripts, want 1: only the reply is late", got)
		}
		r.Heal()
		if d := took(func() { c.Ping(ctx) }); d != 0 {
			t.Errorf("healed, PING took %v", d)
		}
	})
}

// TestBubblePipeline has more commands and replies in flight than any buffer
// on the way holds, and faults in the middle of them.
func TestBubblePipeline(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Mini, c *redis.Client) {
		ctx := t.Context()
		if err := incr.Load(ctx, c).Err(); err != nil {
			t.Fatal(err)
		}
		r.FailNext(2, "LOADING for a moment")
		r.Delay(time.Millisecond)
		const n = 3000
		echoes := make([]*redis.StringCmd, n)
		scripts := make([]*redis.Cmd, 4)
		pipe := c.Pipeline()
		for i := range n {
			echoes[i] = pipe.Echo(ctx, "a message of some length, number "+itoa(i))
			if i >= 1000 && i < 1000+len(scripts) {
				scripts[i-1000] = incr.EvalSha(ctx, pipe, []string{"n"})
			}
		}
		d := took(func() { _, _ = pipe.Exec(ctx) })
		// Pipelines have a connection of their own. Its handshake is two round
		// trips, and all the rest is one.
		if d != 3*time.Millisecond {
			t.Errorf("the pipeline took %v, want 3ms", d)
		}
		for i, e := range echoes {
			if want := "a message of some length, number " + itoa(i); e.Val() != want {
				t.Fatalf("reply %d = %q, %v, want %q", i, e.Val(), e.Err(), want)
			}
		}
		for i, s := range scripts {
			v, err := s.Int()
			if i < 2 && !redis.IsLoadingError(err) {
				t.Errorf("script %d: %v, want LOADING", i, err)
			}
			if i >= 2 && v != i-1 {
				t.Errorf("script %d = %d, %v, want %d", i, v, err, i-1)
			}
		}
		want := redistest.Counts{EvalSHA: 4, Runs: 2}
		got := r.Counts()
		got.Dials, got.Conns = 0, 0
		if got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}

// TestBubbleManyCallers has more callers than go-redis has connections by
// default, and leaves an outage behind when it ends.
func TestBubbleManyCallers(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Mini, c *redis.Client) {
		c = r.Client() // dials and retries as by default
		var callers sync.WaitGroup
		for range 100 {
			callers.Go(func() {
				if err := incr.Run(t.Context(), c, []string{"n"}).Err(); err != nil {
					t.Error(err)
				}
			})
		}
		callers.Wait()
		if got := r.Counts().Runs; got != 100 {
			t.Errorf("the server ran %d scripts, want 100", got)
		}
		r.Kill()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		for range 100 {
			callers.Go(func() { c.Get(ctx, "n") })
		}
		callers.Wait()
	})
}

// TestBubbleSmallPool has callers wait for a connection in a bubble, after and
// before others do so in real time, which shares timers between them.
func TestBubbleSmallPool(t *testing.T) {
	crowd := func(t *testing.T, r *redistest.Mini) time.Duration {
		t.Helper()
		r.Delay(time.Millisecond)
		c := r.Client(func(o *redis.Options) { o.PoolSize = 1 })
		return took(func() {
			var callers sync.WaitGroup
			for range 10 {
				callers.Go(func() {
					if err := c.Ping(t.Context()).Err(); err != nil {
						t.Error(err)
					}
				})
			}
			callers.Wait()
		})
	}
	for range 2 {
		crowd(t, redistest.MiniTCP(t))
		synctest.Test(t, func(t *testing.T) {
			// The handshake is three round trips.
			if d := crowd(t, redistest.Bubble(t)); d != 13*time.Millisecond {
				t.Errorf("10 callers with one connection took %v, want 13ms", d)
			}
		})
	}
}

func TestBubbleDropInPipeline(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Mini, c *redis.Client) {
		ctx := t.Context()
		if err := incr.Load(ctx, c).Err(); err != nil {
			t.Fatal(err)
		}
		r.DropReplies(1)
		pipe := c.Pipeline()
		ping := pipe.Ping(ctx)
		first := incr.EvalSha(ctx, pipe, []string{"n"})
		second := incr.EvalSha(ctx, pipe, []string{"n"})
		_, err := pipe.Exec(ctx)
		if !errors.Is(err, io.EOF) || ping.Val() != "PONG" || first.Err() == nil || second.Err() == nil {
			t.Errorf("%v; PING = %v, scripts = %v, %v; want PONG, EOF, EOF",
				err, ping, first.Err(), second.Err())
		}
		synctest.Wait()
		if got := r.Counts().Runs; got != 2 {
			t.Errorf("the server ran %d scripts, want 2", got)
		}
	})
}

func TestBubbleRefusesPubSub(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Mini, c *redis.Client) {
		s := c.Subscribe(t.Context(), "channel")
		defer func() { _ = s.Close() }()
		if _, err := s.Receive(t.Context()); !redis.HasErrorPrefix(err, "redistest:") {
			t.Errorf("SUBSCRIBE: %v, want a refusal", err)
		}
	})
}
