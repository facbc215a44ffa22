package main

import (
	"io"
	"strings"
	"testing"

	"github.com/resilient-go/limiter/internal/redistest"
	"github.com/resilient-go/limiter/internal/transcript"
)

func TestMain(m *testing.M) {
	redistest.SilenceClientLog()
	m.Run()
}

func TestOutputIsThatOfTheReadme(t *testing.T) {
	transcript.Check(t, func(out io.Writer) error { return run(t.Context(), out, "", "127.0.0.1:0", false) }, `:\d{4,5}/`)
}

func TestMistakesAreExplained(t *testing.T) {
	if err := run(t.Context(), io.Discard, "", "nonsense", false); err == nil || !strings.Contains(err.Error(), "choose another address with -addr") {
		t.Errorf("a wrong address: %v", err)
	}
}
