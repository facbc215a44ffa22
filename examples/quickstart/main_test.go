package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strconv"
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

// The README shows what the program prints, but for what differs from run to
// run: durations, the address, and how many of the first requests asked Redis.
func TestOutputIsThatOfTheReadme(t *testing.T) {
	want := variable(outputInReadme(t))
	for name, start := range map[string]func(t *testing.T) (url string, empty func()){
		"embedded": func(*testing.T) (string, func()) { return "", func() {} },
		"server": func(t *testing.T) (string, func()) {
			server := redistest.Server(t)
			return "redis://" + server.Addr(), server.RestartEmpty
		},
	} {
		t.Run(name, func(t *testing.T) {
			url, empty := start(t)
			for range 2 { // the second run finds what the first left in Redis
				// A machine that stands still for the remote time-out is an outage to a
				// limiter, and the output then tells of it. That is no fault of either.
				var wrong string
				for range 3 {
					if wrong = differences(t, url, want); wrong == "" {
						break
					}
					empty() // one that could not say goodbye is counted for a while
				}
				if wrong != "" {
					t.Error(wrong)
				}
			}
		})
	}
}

// differences runs the example and says what is not as it should be.
func differences(t *testing.T, url, want string) string {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), &out, url); err != nil {
		return fmt.Sprintf("%v after the output\n%s", err, &out)
	}
	if got := variable(out.String()); got != want {
		return fmt.Sprintf("got\n%s\nwithout what varies:\n%s\nwant\n%s", &out, got, want)
	}
	asked, leased := count(t, out.String(), "allowed by asking"), count(t, out.String(), "allowed from permits")
	if asked < 1 || leased < 1 || asked+leased != 30 {
		return fmt.Sprintf("%d by asking and %d from permits; want some of each and 30 in all", asked, leased)
	}
	return ""
}

func outputInReadme(t *testing.T) string {
	t.Helper()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(readme), "```\n")
	if len(parts) != 3 {
		t.Fatalf("README.md has %d parts around its output, want 3", len(parts))
	}
	return parts[1]
}

var varying = []struct {
	re   *regexp.Regexp
	text string
}{
	{regexp.MustCompile(`\d+(\.\d+)?m?s\b`), "TIME"},
	{regexp.MustCompile(`Redis: .*`), "Redis: WHERE"},
	{regexp.MustCompile(`(?m)^alice: [ \d]\d allowed`), "alice: NN allowed"},
}

func variable(s string) string {
	for _, v := range varying {
		s = v.re.ReplaceAllString(s, v.text)
	}
	return s
}

// count is the number before a text.
func count(t *testing.T, s, text string) int {
	t.Helper()
	m := regexp.MustCompile(`(\d+) ` + text).FindStringSubmatch(s)
	if m == nil {
		t.Fatalf("no number before %q in\n%s", text, s)
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The outage of the example happens at its own connections: another client of
// the same server notices nothing, and nothing but two keys is left.
func TestTheServerIsLeftAlone(t *testing.T) {
	server := redistest.Server(t)
	other := server.Client()
	if err := other.Set(t.Context(), "mine", "kept", 0).Err(); err != nil {
		t.Fatal(err)
	}
	before := server.Counts().Conns
	var err error
	for range 3 { // see above
		if err = run(t.Context(), &bytes.Buffer{}, "redis://"+server.Addr()); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if got, err := other.Get(t.Context(), "mine").Result(); got != "kept" || err != nil {
		t.Errorf("another client reads %q, %v; want what it wrote", got, err)
	}
	if got := server.Counts().Conns - before; got < 2 {
		t.Errorf("the example made %d connections: it did not use the server before and after the cut", got)
	}
	keys, err := other.Keys(t.Context(), "*").Result()
	if err != nil || len(keys) != 4 {
		t.Errorf("keys %q, %v; want mine, one for each of two users, and that of the instances", keys, err)
	}
}

func TestMistakesAreExplained(t *testing.T) {
	gone := redistest.Server(t)
	gone.Kill()
	locked := miniredis.RunT(t)
	locked.RequireAuth("secret")
	for _, c := range []struct{ name, url, want string }{
		{"no password", "redis://" + locked.Addr(), "give its password as in redis://:password@host:port"},
		{"wrong password", "redis://:no@" + locked.Addr(), "give its password as in redis://:password@host:port"},
		{"no server there", "redis://" + gone.Addr(), "start one with redis-server, give its password as in redis://:password@host:port, or leave out -redis"},
		{"not a URL of Redis", "http://localhost:6379", "want redis://"},
		{"no URL at all", "localhost", "want redis://"},
		{"wrong database", "redis://localhost:6379/x", "want redis://"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			err := run(t.Context(), &out, c.url)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got the error %v, want one that says %q", err, c.want)
			}
			if out.Len() > 0 {
				t.Errorf("printed before the error: %s", &out)
			}
		})
	}
}
