package e2e

import (
	"io"
	"log/slog"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

func TestMain(m *testing.M) {
	redistest.SilenceClientLog()
	if os.Getenv(workerEnv) != "" {
		serve()
		return
	}
	goleak.VerifyTestMain(m)
}

// full is set for the large counts.
var full = os.Getenv("LIMITER_FULL") == "1"

// normally returns n, or the number for a full run.
func normally(n, inFull int) int {
	if full {
		return inFull
	}
	return n
}

var quiet = hybrid.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))

// patience is for whatever must happen, on a machine that is busy.
const patience = 30 * time.Second

// eventually polls until something is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	end := time.After(patience)
	for !so() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// The clock of all processes of a test, in nanoseconds. It starts from the wall
// clock, which they share, and then follows the monotonic one. Parents check
// that it agrees with that of their workers.
var epoch = time.Now()

func stamp() int64 { return epoch.UnixNano() + int64(time.Since(epoch)) }

// until returns a channel that says when an instant has come.
func until(at int64) <-chan time.Time { return time.After(time.Duration(at - stamp())) }

// A Call is one request and what became of it. The decision fell between Start
// and End.
type Call struct {
	Start, End int64
	Key        string
	N          int
	Allowed    bool
	Source     hybrid.Source
}

// admitted counts the tokens that were let through.
func admitted(calls []Call) (n int) {
	for _, c := range calls {
		if c.Allowed {
			n += c.N
		}
	}
	return n
}

// decidedBy counts the calls that one source decided.
func decidedBy(calls []Call, s hybrid.Source) (n int) {
	for _, c := range calls {
		if c.Source == s {
			n++
		}
	}
	return n
}

// span is from the start of the first call to the end of the last.
func span(calls []Call) time.Duration {
	first, last := calls[0].Start, calls[0].End
	for _, c := range calls {
		first, last = min(first, c.Start), max(last, c.End)
	}
	return time.Duration(last - first)
}
