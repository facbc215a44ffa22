package hybrid_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// A journal keeps the events of a limiter.
type journal struct {
	mu   sync.Mutex
	list []hybrid.Event
}

func (j *journal) add(e hybrid.Event) {
	if _, ok := e.(hybrid.NearLimit); ok {
		return // told of in near_test.go
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.list = append(j.list, e)
}

func (j *journal) all() []hybrid.Event {
	settle()
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.list)
}

// flap makes Redis fail and come back, and waits until the limiter knows.
func flap(t *testing.T, r *redistest.Mini, lim *hybrid.Limiter) {
	t.Helper()
	r.FailWith("NOAUTH Authentication required.") // opens at once
	trip(t, lim)
	r.Heal()
	for lim.Stats().Degraded {
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
	}
}

func TestEventsComeInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		events := new(journal)
		lim := start(t, r, hybrid.PerSecond(10), hybrid.WithEvents(events.add))
		warm(t, lim)
		for range 3 {
			flap(t, r, lim)
		}
		text := ""
		for _, e := range events.all() {
			switch e := e.(type) {
			case hybrid.BreakerChanged:
				text += fmt.Sprintf("%s→%s ", e.From, e.To)
			case hybrid.Degraded:
				text += fmt.Sprintf("degraded(%s, %d, %v) ", e.Class, e.Instances, e.InstancesAssumed)
			default:
				text += fmt.Sprintf("%T ", e)
			}
		}
		once := "closed→open hybrid.Misconfigured degraded(forbidden, 1, true) open→half-open half-open→closed hybrid.Recovered "
		want(t, "events", text, once+once+once)
	})
}

func TestInstancesAreAssumedUnderTheSharePolicyOnly(t *testing.T) {
	for policy, assumed := range map[hybrid.OutagePolicy]bool{hybrid.Share: true, hybrid.FailOpen: false, hybrid.FailClosed: false} {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			r.Kill()
			events := new(journal)
			lim := start(t, r, hybrid.PerSecond(10), hybrid.WithOutagePolicy(policy), hybrid.WithEvents(events.add))
			trip(t, lim)
			for _, e := range events.all() {
				if d, ok := e.(hybrid.Degraded); ok {
					want(t, "assumed", d.InstancesAssumed, assumed)
				}
			}
		})
	}
}

func TestSlowHandlerHoldsNobodyUp(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		var told []hybrid.Event
		var busy atomic.Int32
		release := make(chan struct{})
		lim := start(t, r, hybrid.PerSecond(10), hybrid.WithEvents(func(e hybrid.Event) {
			if busy.Add(1) != 1 {
				t.Error("the handler is called while it runs")
			}
			<-release
			told = append(told, e)
			busy.Add(-1)
		}))
		warm(t, lim)
		for range 20 {
			flap(t, r, lim)
		}
		// At least five events each, of which one is in the handler and 64 wait.
		want(t, "source", allowN(t, lim, "other", 1).Source, hybrid.SourceRedis)
		dropped := lim.Stats().EventsDropped
		close(release)
		settle()
		want(t, "told", len(told), 65)
		if dropped < 100-65 {
			t.Errorf("%d dropped of 100 or more", dropped)
		}
		for i := 1; i < len(told); i++ {
			if told[i].When().Before(told[i-1].When()) {
				t.Errorf("event %d is out of order", i)
			}
		}
		flap(t, r, lim)
		settle()
		want(t, "told afterwards", len(told) >= 65+5, true)
		want(t, "dropped", lim.Stats().EventsDropped, dropped)
	})
}

func TestPanickingHandlerIsContained(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		var calls atomic.Int64
		lim := start(t, r, hybrid.PerSecond(10), hybrid.WithEvents(func(hybrid.Event) {
			calls.Add(1)
			panic("of the user")
		}))
		warm(t, lim)
		flap(t, r, lim)
		settle()
		want(t, "calls", calls.Load() >= 5, true)
		want(t, "panics", lim.Stats().EventPanics, uint64(calls.Load()))
		want(t, "source", allow(t, lim).Source, hybrid.SourceRedis)
	})
}

func TestHandlerMayUseTheLimiter(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		var lim *hybrid.Limiter
		ready := make(chan struct{})
		var stats []hybrid.Stats
		lim = start(t, r, hybrid.PerSecond(10), hybrid.WithEvents(func(e hybrid.Event) {
			<-ready
			stats = append(stats, lim.Stats())
			if _, err := lim.Allow(t.Context(), "from the handler"); err != nil {
				t.Error(err)
			}
			if _, err := lim.Peek(t.Context(), "from the handler"); err != nil {
				t.Error(err)
			}
		}))
		close(ready)
		warm(t, lim)
		flap(t, r, lim)
		settle()
		want(t, "events", len(stats) >= 5, true)
		want(t, "degraded when it is told so", stats[0].Degraded, true)
	})
}

func TestHandlerMayClose(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		var lim *hybrid.Limiter
		ready, done := make(chan struct{}), make(chan time.Duration, 1)
		lim = start(t, r, hybrid.PerSecond(10), hybrid.WithEvents(func(e hybrid.Event) {
			<-ready
			if _, ok := e.(hybrid.Degraded); ok {
				done <- took(func() { _ = lim.Close() })
			}
		}))
		close(ready)
		r.Kill()
		for lim.Stats().Breaker == "closed" {
			_, _ = lim.Allow(t.Context(), "k") // it may be closed by now
			settle()
		}
		if d := <-done; d > hybrid.DefaultRemoteTimeout+50*time.Millisecond {
			t.Errorf("Close took %v", d)
		}
	})
}

func TestEventsBeforeCloseAreDelivered(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		var told atomic.Int64
		lim := start(t, r, hybrid.PerSecond(10), hybrid.WithEvents(func(hybrid.Event) {
			time.Sleep(time.Millisecond)
			told.Add(1)
		}))
		warm(t, lim)
		r.FailWith("NOAUTH Authentication required.")
		allow(t, lim)
		settle()
		_ = lim.Close()
		want(t, "told", told.Load(), 3) // breaker, misconfigured, degraded
	})
}

func TestMisconfigurationIsToldOnceAMinute(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		events := new(journal)
		lim := start(t, r, hybrid.PerSecond(10), hybrid.WithEvents(events.add))
		warm(t, lim)
		r.FailWith("WRONGTYPE Operation against a key holding the wrong kind of value")
		begun := time.Now()
		for time.Since(begun) < 150*time.Second {
			allow(t, lim)
			time.Sleep(500 * time.Millisecond)
		}
		var at []time.Duration
		for _, e := range events.all() {
			at = append(at, e.When().Sub(begun))
		}
		want(t, "told", fmt.Sprint(at), "[0s 1m0s 2m0s]")
	})
}

// records counts log records by level.
type records struct {
	mu   sync.Mutex
	seen map[slog.Level][]string
}

func (h *records) Enabled(context.Context, slog.Level) bool { return true }
func (h *records) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h *records) WithGroup(string) slog.Handler            { return h }

func (h *records) Handle(_ context.Context, r slog.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.seen == nil {
		h.seen = map[slog.Level][]string{}
	}
	h.seen[r.Level] = append(h.seen[r.Level], r.Message)
	return nil
}

func TestLogTellsTransitionsOnly(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		h := new(records)
		lim := start(t, r, hybrid.PerSecond(10), hybrid.WithLogger(slog.New(h)))
		warm(t, lim)
		r.Kill()
		for i := range 10_000 {
			allowN(t, lim, fmt.Sprint(i%100), 1)
			if i%100 == 0 {
				time.Sleep(10 * time.Millisecond)
			}
		}
		r.RestartEmpty()
		time.Sleep(time.Second)
		settle()
		h.mu.Lock()
		defer h.mu.Unlock()
		warned := h.seen[slog.LevelWarn]
		want(t, "warnings", fmt.Sprint(warned), "[rate limiter degraded]")
		want(t, "recovery", fmt.Sprint(h.seen[slog.LevelInfo]), "[rate limiter recovered]")
		want(t, "errors", len(h.seen[slog.LevelError]), 0)
		if n := len(h.seen[slog.LevelDebug]); n < 3 || n > 12 { // open, and each probe two
			t.Errorf("%d records of the breaker", n)
		}
	})
}

func TestKnownInstancesAreNoWarning(t *testing.T) {
	rdb := redis.NewClient(hybrid.RedisOptions("127.0.0.1:1").Simple())
	t.Cleanup(func() { _ = rdb.Close() })
	for _, option := range []hybrid.Option{hybrid.WithExpectedInstances(1), hybrid.WithOutagePolicy(hybrid.FailOpen)} {
		h := new(records)
		startOn(t, rdb, hybrid.PerSecond(10), hybrid.WithLogger(slog.New(h)), option)
		want(t, "records of New", len(h.seen), 0)
	}
}
