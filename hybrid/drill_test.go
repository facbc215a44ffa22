package hybrid_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// told notes the beginning and the end of degraded times.
type told struct {
	mu   sync.Mutex
	list []string
}

func (l *told) event(e hybrid.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch e := e.(type) {
	case hybrid.Degraded:
		l.list = append(l.list, "degraded: "+e.Class)
	case hybrid.Recovered:
		l.list = append(l.list, fmt.Sprintf("recovered after %v, %d allowed and %d refused", e.Duration, e.Allowed, e.Refused))
	}
}

func (l *told) String() string {
	settle()
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprint(l.list)
}

func TestADrillIsAnOutageThatWasAskedFor(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		var events told
		lim := start(t, r, hybrid.PerMinute(60), hybrid.WithExpectedInstances(4), hybrid.WithEvents(events.event))
		allow(t, lim)
		time.Sleep(time.Second)
		lim.ForceDegraded(10 * time.Second)
		calls := r.Counts().Runs
		want(t, "this instance's part", drain(t, lim, "k"), 15)
		want(t, "source", allow(t, lim).Source, hybrid.SourceDegraded)
		want(t, "degraded", lim.Stats().Degraded, true)
		want(t, "breaker", lim.Stats().Breaker, "closed")
		want(t, "calls", r.Counts().Runs-calls, 0)
		time.Sleep(10*time.Second + 1)
		want(t, "told", events.String(), "[degraded: drill recovered after 10s, 15 allowed and 2 refused]")
		time.Sleep(2 * time.Second) // no other instance can be degraded any more
		want(t, "source", allow(t, lim).Source, hybrid.SourceRedis)
		want(t, "degraded for", lim.Stats().DegradedFor, 10*time.Second)
	})
}

func TestADrillEndsEarlyOrIsProlonged(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		var events told
		lim := start(t, r, hybrid.PerMinute(60), hybrid.WithEvents(events.event))
		lim.ForceDegraded(0) // there is none
		lim.ForceDegraded(time.Hour)
		time.Sleep(time.Second)
		lim.ForceDegraded(0)
		want(t, "told", events.String(), "[degraded: drill recovered after 1s, 0 allowed and 0 refused]")
		lim.ForceDegraded(time.Second)
		time.Sleep(900 * time.Millisecond)
		lim.ForceDegraded(time.Second)
		time.Sleep(900 * time.Millisecond)
		want(t, "degraded", lim.Stats().Degraded, true)
		time.Sleep(200 * time.Millisecond)
		want(t, "degraded for", lim.Stats().DegradedFor, 2900*time.Millisecond)
		lim.ForceDegraded(time.Hour)
		_ = lim.Close()
		want(t, "degraded", lim.Stats().Degraded, false)
		lim.ForceDegraded(time.Hour)
		want(t, "after Close", lim.Stats().Degraded, false)
	})
}

// TestAnOutageWithinADrillIsOneDegradedTime, in whatever order they end.
func TestAnOutageWithinADrillIsOneDegradedTime(t *testing.T) {
	for drill, total := range map[time.Duration]time.Duration{
		5 * time.Second: 8 * time.Second, 20 * time.Second: 20020 * time.Millisecond,
	} {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			var events told
			lim := start(t, r, hybrid.PerMinute(60), hybrid.WithEvents(events.event))
			r.Kill()
			lim.ForceDegraded(time.Millisecond) // the breaker opens by calls only
			time.Sleep(time.Second)
			trip(t, lim)
			begun := time.Now()
			lim.ForceDegraded(drill)
			time.Sleep(7 * time.Second)
			r.RestartWithData()
			for lim.Stats().Degraded {
				time.Sleep(10 * time.Millisecond)
			}
			if d := time.Since(begun); d < max(drill, 7*time.Second) || d > total {
				t.Errorf("with a drill of %v: back after %v", drill, d)
			}
			want(t, "degraded and recovered", strings.Count(events.String(), "degraded:")+strings.Count(events.String(), "recovered"), 4)
			want(t, "with Redis", allow(t, lim).Source, hybrid.SourceRedis)
		})
	}
}
