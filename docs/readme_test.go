package docs_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// TestReadmeSaysWhatItsProgramPrints, with a Redis and without.
func TestReadmeSaysWhatItsProgramPrints(t *testing.T) {
	text := read(t, "../README.md")
	const made = "hybrid.New(rdb, hybrid.PerSecond(100),\n\t\thybrid.WithName(\"api\"), hybrid.WithExpectedInstances(4))"
	const shown = "fmt.Println(res.Allowed, res.Source, res.Remaining, res.RetryAfter)"
	if !strings.Contains(text, made) || !strings.Contains(text, shown) {
		t.Fatal("the program is another one: change this test as well")
	}
	synctest.Test(t, func(t *testing.T) {
		up := redistest.Bubble(t).Client()
		down := redis.NewClient(&redis.Options{Dialer: func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("nobody there")
		}})
		defer func() { _ = down.Close() }()
		for _, rdb := range []*redis.Client{up, down} {
			lim, err := hybrid.New(rdb, hybrid.PerSecond(100), hybrid.WithName("api"), hybrid.WithExpectedInstances(4),
				hybrid.WithLogger(slog.New(slog.DiscardHandler)))
			if err != nil {
				t.Fatal(err)
			}
			res, err := lim.Allow(t.Context(), "user:10001")
			if err != nil {
				t.Fatal(err)
			}
			_ = lim.Close()
			if line := "`" + fmt.Sprint(res.Allowed, " ", res.Source, " ", res.Remaining, " ", res.RetryAfter) + "`"; !strings.Contains(text, line) {
				t.Errorf("the README does not say that it prints %s", line)
			}
		}
	})
}

// TestReadmeFiguresAreThoseOfTheSimulator, whose own README a test keeps.
func TestReadmeFiguresAreThoseOfTheSimulator(t *testing.T) {
	shown := read(t, "../examples/simulate/README.md")
	for _, c := range []struct{ readme, simulator string }{
		{`use ([\d.]+) % of what one bucket would admit`, `(?m)^use +([\d.]+) %`},
		{`make (\d+) calls to Redis per second together`, `(?m)^calls per second +(\d+)\.\d `},
	} {
		says := regexp.MustCompile(c.readme).FindStringSubmatch(strings.Join(strings.Fields(read(t, "../README.md")), " "))
		is := regexp.MustCompile(c.simulator).FindStringSubmatch(shown)
		if says == nil || is == nil {
			t.Errorf("%q or %q is not found", c.readme, c.simulator)
		} else if says[1] != is[1] {
			t.Errorf("the README says %q, the simulator %s", says[0], is[1])
		}
	}
}

// TestReadmeNamesEachEventAndOption that there is.
func TestReadmeNamesEachEventAndOption(t *testing.T) {
	text := read(t, "../README.md")
	for _, c := range []struct{ file, pattern string }{
		{"../hybrid/*.go", `(?m)^func \((?:\w+ )?(\w+)\) attrs\(\)`},
		{"../hybrid/*.go", `(?m)^func (With\w+)\(.*\) Option`},
	} {
		files, err := filepath.Glob(c.file)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, file := range files {
			for _, m := range regexp.MustCompile(c.pattern).FindAllStringSubmatch(read(t, file), -1) {
				if found++; !strings.Contains(text, "`"+m[1]+"`") {
					t.Errorf("the README does not name %s of %s", m[1], file)
				}
			}
		}
		if found < 8 {
			t.Errorf("%s matches %d times only", c.pattern, found)
		}
	}
}
