package hybrid_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// A logbook keeps log lines as text, without their times.
type logbook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logbook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logbook) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{
		Level: slog.LevelDebug - 100,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}

// taken returns the lines since the last time.
func (b *logbook) taken() []string {
	settle()
	b.mu.Lock()
	defer b.mu.Unlock()
	lines := strings.Split(strings.TrimSuffix(b.buf.String(), "\n"), "\n")
	b.buf.Reset()
	return lines
}

// secret is a user's key, which must not be in any line.
const secret = "user:secret@example.org"

// wantLog fails the test unless the lines are what is wanted. The lines are part
// of the interface: people search and alert by them.
func wantLog(t *testing.T, b *logbook, wanted ...string) {
	t.Helper()
	got := b.taken()
	if !slices.Equal(got, wanted) {
		t.Errorf("logged:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(wanted, "\n"))
	}
	for _, line := range got {
		if strings.Contains(line, "secret") {
			t.Errorf("a key is in %s", line)
		}
	}
}

// TestLogLines are the same for ever: level, text, names of attributes, and their
// order; and there is one for each kind of event.
func TestLogLines(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		b, kinds := new(logbook), map[string]bool{}
		take := func(lim *hybrid.Limiter, n int) {
			t.Helper()
			allowN(t, lim, secret, n)
		}
		lim := start(t, r, hybrid.PerMinute(10), hybrid.WithName("api"), hybrid.WithLogger(b.logger()),
			hybrid.WithEvents(func(e hybrid.Event) { kinds[fmt.Sprintf("%T", e)] = true }))
		take(lim, 8)
		wantLog(t, b, `level=DEBUG msg="rate limiter near limit" limiter=api limit=10/m left=2`)

		r.FailWith("NOAUTH Authentication required.")
		take(lim, 1)
		const noAuth = `error="remote: acquire: forbidden: NOAUTH Authentication required."`
		wantLog(t, b,
			`level=DEBUG msg="rate limiter breaker changed" limiter=api from=closed to=open `+noAuth,
			`level=ERROR msg="rate limiter misconfigured" limiter=api class=forbidden `+noAuth,
			`level=WARN msg="rate limiter degraded" limiter=api class=forbidden `+noAuth+` instances=1 instances_assumed=true`)

		take(lim, 1)
		take(lim, 10)
		r.Heal()
		begun := time.Now()
		for lim.Stats().Degraded {
			time.Sleep(time.Millisecond)
		}
		degraded := lim.Stats().DegradedFor
		if degraded <= 0 || degraded > time.Since(begun)+time.Second {
			t.Errorf("degraded for %v", degraded)
		}
		wantLog(t, b,
			`level=DEBUG msg="rate limiter breaker changed" limiter=api from=open to=half-open error=""`,
			`level=DEBUG msg="rate limiter breaker changed" limiter=api from=half-open to=closed error=""`,
			fmt.Sprintf(`level=INFO msg="rate limiter recovered" limiter=api duration=%v allowed=2 refused=1`, degraded))

		r.FailNext(1, "WRONGTYPE Operation against a key holding the wrong kind of value")
		time.Sleep(time.Minute)
		take(lim, 1)
		wantLog(t, b, `level=ERROR msg="rate limiter misconfigured" limiter=api class=badkey `+
			`error="remote: acquire: badkey: WRONGTYPE Operation against a key holding the wrong kind of value"`)

		other := start(t, r, hybrid.PerMinute(5), hybrid.WithName("api"), hybrid.WithLimitVersion(7), hybrid.WithExpectedInstances(2))
		time.Sleep(time.Minute) // what is known of the key is old by then
		take(other, 1)
		take(lim, 1)
		wantLog(t, b, `level=WARN msg="rate limiter limit mismatch" limiter=api ours=10/m our_version=0 theirs="1/12s burst 5" their_version=7`)

		budget := start(t, r, hybrid.PerMinute(10), hybrid.WithName("llm"), hybrid.WithLogger(b.logger()))
		booked := reserve(t, budget, secret, 10)
		want(t, "error", booked.Settle(25), nil)
		settle()
		wantLog(t, b, `level=WARN msg="rate limiter could not charge all" limiter=llm tokens=5`)

		want(t, "kinds", fmt.Sprint(slices.Sorted(maps.Keys(kinds))), "[hybrid.BreakerChanged hybrid.Degraded "+
			"hybrid.LimitMismatch hybrid.Misconfigured hybrid.NearLimit hybrid.Recovered]")
	})
}

// TestLogLinesOfInstancesAndState are the rest of them.
func TestLogLinesOfInstancesAndState(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		b := new(logbook)
		lim := start(t, r, hybrid.PerHour(10), hybrid.WithName("api"), hybrid.WithLogger(b.logger()), hybrid.WithNearLimit(1),
			hybrid.WithMaxKeys(1), hybrid.Announced())
		want(t, "of the key", drain(t, lim, secret), 10)
		wantLog(t, b, `level=DEBUG msg="rate limiter instances changed" limiter=api live=1 peak=1`)

		r.Miniredis().FlushAll()
		time.Sleep(time.Minute)
		want(t, "once more", allowN(t, lim, secret, 2).Allowed, false)
		wantLog(t, b, `level=WARN msg="rate limiter state lost" limiter=api left=0`)

		r.Kill()
		trip(t, lim)
		b.taken()
		for k := range 3 { // the one that is remembered has been used up, and must not be forgotten
			drain(t, lim, fmt.Sprint("other ", k))
		}
		wantLog(t, b, `level=WARN msg="rate limiter table full" limiter=api keys=1`)
	})
}

// TestUnsafeOptionsOfAClientAreLoggedOnce, by New and by nobody later.
func TestUnsafeOptionsOfAClientAreLoggedOnce(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		b := new(logbook)
		options := []hybrid.Option{hybrid.WithName("api"), hybrid.WithLogger(b.logger()), hybrid.WithExpectedInstances(2)}
		lim := startOn(t, r.Client(advised, func(o *redis.Options) { o.ReadTimeout = 3 * time.Second }), hybrid.PerMinute(10), options...)
		wantLog(t, b, `level=WARN msg="rate limiter client options" limiter=api advice="[ReadTimeout 3s is more than `+
			`10 times the remote time-out of 50ms: a call that hangs holds its connection for so long]"`)
		allow(t, lim)
		wantLog(t, b, "")
		start(t, r, hybrid.PerMinute(10), options...)
		wantLog(t, b, "")
	})
}

// TestLogOfTheUsersFunctions: that they panicked or were wrong, but not for whom.
func TestLogOfTheUsersFunctions(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		b := new(logbook)
		lim := start(t, r, hybrid.PerMinute(10), hybrid.WithName("api"), hybrid.WithLogger(b.logger()), hybrid.WithExpectedInstances(2),
			hybrid.WithLimitByKey(func(string) hybrid.Limit { return hybrid.Limit{} }),
			hybrid.WithEvents(func(hybrid.Event) { panic("of the user") }))
		allowN(t, lim, secret, 1)
		wantLog(t, b,
			`level=ERROR msg="rate limiter misconfigured" limiter=api class=limit `+
				`error="hybrid: Limit: no limit was given; want for example PerSecond(100) or the text \"100/s\""`,
			`level=ERROR msg="rate limiter: the handler of WithEvents panicked" limiter=api panic="of the user"`)
	})
}

// TestRequestsAreNotLogged, whatever comes of them.
func TestRequestsAreNotLogged(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		b := new(logbook)
		lim := start(t, r, hybrid.PerMinute(10), hybrid.WithLogger(b.logger()), hybrid.WithExpectedInstances(2))
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for range 3 {
			drain(t, lim, secret)
			for _, n := range []int{-1, 0, 1, 11} {
				_, _ = lim.AllowN(t.Context(), secret, n)
				_, _ = lim.AllowN(ended, secret, n)
				_, _ = lim.WaitN(ended, secret, n)
			}
			_, _ = lim.Allow(t.Context(), "")
			_, _ = lim.Peek(t.Context(), secret)
			if err := lim.Reset(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
		}
		if err := lim.Close(); err != nil {
			t.Fatal(err)
		}
		_, _ = lim.Allow(t.Context(), secret)
		wantLog(t, b, "")
	})
}
