package main

import (
	"io"
	"testing"

	"github.com/resilient-go/limiter/internal/redistest"
	"github.com/resilient-go/limiter/internal/transcript"
)

func TestMain(m *testing.M) {
	redistest.SilenceClientLog()
	m.Run()
}

func TestOutputIsThatOfTheReadme(t *testing.T) {
	real := redistest.Server(t)
	for name, url := range map[string]string{"embedded": "", "server": "redis://" + real.Addr()} {
		t.Run(name, func(t *testing.T) {
			transcript.Check(t, func(out io.Writer) error { return run(t.Context(), out, url) }, `again in (\d+)s`)
		})
	}
}
