package main

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/resilient-go/limiter/internal/redistest"
	"github.com/resilient-go/limiter/internal/transcript"
)

func TestMain(m *testing.M) {
	redistest.SilenceClientLog()
	goleak.VerifyTestMain(m)
}

func TestOutputIsThatOfTheReadme(t *testing.T) {
	transcript.Check(t, func(out io.Writer) error { return run(t.Context(), out, "") })
}

func TestEachTenantHasTheLimitOfItsPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDirectory()
		lim, err := newLimiter(redistest.Bubble(t).Client(), d)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = lim.Close() }()
		admits := func(tenant string, want int) {
			t.Helper()
			if got, err := burst(t.Context(), lim, tenant); err != nil || got != want {
				t.Errorf("%s: %d admitted, %v; want %d", tenant, got, err, want)
			}
		}
		admits("ann", 3)
		admits("bob", 10)
		admits("probes", 100)
		admits("mallory", 0)
		admits("nobody knows", 3)

		if err := upgrade(t.Context(), lim, d, "ann"); err != nil {
			t.Fatal(err)
		}
		admits("ann", 10)

		time.Sleep(2 * time.Second)
		d.set("bob", "banned") // applies with the next question
		admits("bob", 0)
	})
}
