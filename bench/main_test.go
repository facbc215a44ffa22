package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/resilient-go/limiter/bench/peers"
)

// A tiny run writes a document with a row for each limiter in each table, and the
// reason for those that have no part in it.
func TestRunWritesADocument(t *testing.T) {
	file := filepath.Join(t.TempDir(), "benchmarks.md")
	var progress bytes.Buffer
	args := []string{"-out", file, "-only", "B,C,M", "-duration", "10ms", "-rounds", "1"}
	if err := run(args, nil, &progress); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(written)
	for _, want := range []string{
		"# Benchmarks\n", "\n## B: ", "\n## C: ", "\n## M: ", "\n**even**\n", "\n**skewed**\n", "\n## The columns\n",
		"**The run was short**", "go run . -out " + file, "this checkout", "| this library, Key | (a handle is for one key) |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the document does not say %q", want)
		}
	}
	for _, p := range peers.All() {
		// One in the list, one in each of four tables, and one in the chart of B.
		want := 5
		if got := strings.Count(text, "\n| "+p.Name+" | "); got != want {
			t.Errorf("%d rows of %s, want %d", got, p.Name, want)
		}
		if bar := strings.Contains(text, "\n"+p.Name+"  ") && strings.Contains(text, "█"); bar != (p.Out["B"] == "") {
			t.Errorf("%s in the chart: %t", p.Name, bar)
		}
	}
	for line := range strings.Lines(text) {
		if strings.Contains(line, "NaN") || strings.Contains(line, "Inf") {
			t.Errorf("no number: %s", line)
		}
	}
	if got := strings.Count(progress.String(), "done"); got != 3 {
		t.Errorf("progress of %d scenarios, want 3:\n%s", got, &progress)
	}
}

func TestFlags(t *testing.T) {
	o, err := parse([]string{"-only", "E,A", "-duration", "2s", "-rounds", "5", "-out", "x.md"}, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	if o.duration != 2*time.Second || o.rounds != 5 || o.out != "x.md" || len(o.todo) != 2 || o.todo[0].letter != "A" || o.todo[1].letter != "E" {
		t.Errorf("got %+v", o)
	}
	if o, err := parse(nil, &bytes.Buffer{}); err != nil || o.out != "-" || o.rounds != 3 || o.duration != time.Second || len(o.todo) != len(scenarios) {
		t.Errorf("without flags: %+v, %v", o, err)
	}
	for _, bad := range []string{"-only X", "-only A,A", "-only A,", "-rounds 0", "-duration 0s", "more", "-nonsense"} {
		if _, err := parse(strings.Fields(bad), &bytes.Buffer{}); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

// Each limiter leads a round once, and those that are out have no turn.
func TestTurnsRotate(t *testing.T) {
	b := &bench{peers: []peers.Peer{{Name: "a"}, {Name: "b", Out: map[string]string{"Z": "why"}}, {Name: "c"}}}
	for round, want := range []string{"a c", "c a", "c a", "a c"} {
		var got []string
		for _, p := range b.turn("Z", round) {
			got = append(got, p.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("round %d: %v, want %s", round, got, want)
		}
	}
}
