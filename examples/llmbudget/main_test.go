package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"go.uber.org/goleak"

	"github.com/resilient-go/limiter/internal/redistest"
)

func TestMain(m *testing.M) {
	redistest.SilenceClientLog()
	goleak.VerifyTestMain(m)
}

func TestOutputIsThatOfTheReadme(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(readme), "```\n")
	if len(parts) != 3 {
		t.Fatalf("README.md has %d parts around its output, want 3", len(parts))
	}
	// A machine that stands still for the remote time-out is an outage to a
	// limiter, and a slow one gains tokens meanwhile.
	var wrong string
	for range 3 {
		var out bytes.Buffer
		err := run(t.Context(), &out, miniredis.RunT(t).Addr())
		if wrong = ""; err == nil && out.String() == parts[1] {
			return
		}
		wrong = fmt.Sprintf("%v, got\n%s\nwant\n%s", err, &out, parts[1])
	}
	t.Error(wrong)
}
