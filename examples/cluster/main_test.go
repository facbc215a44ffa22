package main

import (
	"io"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/resilient-go/limiter/internal/redistest"
	"github.com/resilient-go/limiter/internal/transcript"
)

func TestMain(m *testing.M) {
	redistest.SilenceClientLog()
	goleak.VerifyTestMain(m)
}

// On a real cluster: each user gets exactly the limit, whichever instances are asked.
func TestOutputIsThatOfTheReadme(t *testing.T) {
	transcript.Check(t, func(out io.Writer) error { return run(t.Context(), out, "") })
}

// A cluster of the user's is used like our own, twice in a row.
func TestYourCluster(t *testing.T) {
	cluster := redistest.Cluster(t)
	for range 2 {
		transcript.Check(t, func(out io.Writer) error { return run(t.Context(), out, cluster.Addr()) })
	}
}

func TestMistakesAreExplained(t *testing.T) {
	err := run(t.Context(), io.Discard, "127.0.0.1:1,127.0.0.1:2")
	if err == nil || !strings.Contains(err.Error(), "-redis takes addresses such as") {
		t.Errorf("no cluster there: %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if err := run(t.Context(), io.Discard, ""); err == nil || !strings.Contains(err.Error(), "install it with") {
		t.Errorf("no redis-server: %v", err)
	}
}
