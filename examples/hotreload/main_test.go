package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"go.uber.org/goleak"

	"github.com/resilient-go/limiter/internal/redistest"
)

func TestMain(m *testing.M) {
	redistest.SilenceClientLog()
	goleak.VerifyTestMain(m)
}

// A machine that stands still for the remote time-out is an outage to a limiter,
// which then looks at what it knows itself: the output is the same.
func TestOutputIsThatOfTheReadme(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(readme), "```\n")
	if len(parts) != 3 {
		t.Fatalf("README.md has %d parts around its output, want 3", len(parts))
	}
	var out bytes.Buffer
	if err := demonstrate(t.Context(), &out, miniredis.RunT(t).Addr()); err != nil {
		t.Fatal(err)
	}
	if out.String() != parts[1] {
		t.Errorf("got\n%s\nwant\n%s", &out, parts[1])
	}
}

func TestWatchTellsOfEachContentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "rules")
		write := func(text string) {
			t.Helper()
			if err := replace(file, text); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		var seen []string
		go func() {
			ended <- watch(ctx, file, "a", time.Second, func(text string) { seen = append(seen, text) })
		}()
		time.Sleep(3 * time.Second) // there is no file yet
		write("a")                  // what was read before
		write("b")
		time.Sleep(5 * time.Second)
		write("") // somebody is writing
		write("b")
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		write("c")
		write("a")
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("watch ended with %v", err)
		}
		if want := []string{"b", "c", "a"}; !slices.Equal(seen, want) {
			t.Errorf("told of %q, want %q", seen, want)
		}
	})
}

func TestTheFileOfTheReadmeIsValid(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	err := serve(ctx, &out, miniredis.RunT(t).Addr(), "limits.txt")
	if !errors.Is(err, context.Canceled) || !strings.HasPrefix(out.String(), "3 rules;") {
		t.Errorf("%v, %q", err, &out)
	}
	err = serve(ctx, &out, "", "missing.txt")
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}
