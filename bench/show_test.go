package main

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestShow(t *testing.T) {
	for _, test := range []struct {
		show func(float64) string
		x    float64
		want string
	}{
		{count, 0, "0"},
		{count, 999.6, "1,000"},
		{count, 12_345_678, "12,345,678"},
		{count, -1234, "-1,234"},
		{figure, 0, "0"},
		{figure, 0.001, "0.00"},
		{figure, 0.01234, "0.0123"},
		{figure, 1.234, "1.23"},
		{figure, 12.34, "12.3"},
		{figure, 123.4, "123"},
		{figure, 1234.6, "1,235"},
		{ratio, 0, "0"},
		{ratio, 0.0000567, "5.7e-05"},
		{ratio, 4, "4.00"},
		{percent, 0.123456, "12.3 %"},
		{span, 0, "0 ns"},
		{span, 321, "321 ns"},
		{span, 4567, "4.57 µs"},
		{span, 1.2e6, "1.20 ms"},
		{span, 2.5e9, "2.50 s"},
		{size, 512, "512 B"},
		{size, 2048, "2.00 KiB"},
		{size, 5 << 20, "5.00 MiB"},
	} {
		if got := test.show(test.x); got != test.want {
			t.Errorf("%v is shown as %q, want %q", test.x, got, test.want)
		}
	}
}

func TestTable(t *testing.T) {
	want := "| a | b |\n| --- | ---: |\n| x | 1 |\n| y | 2 |\n"
	if got := table([]string{"a", "b"}, [][]string{{"x", "1"}, {"y", "2"}}); got != want {
		t.Errorf("got\n%s", got)
	}
	if got := list([]string{"a", "b"}, nil); got != "| a | b |\n| --- | --- |\n" {
		t.Errorf("got\n%s", got)
	}
}

// A power of ten is as long everywhere, and what is there at all has a bar.
func TestChart(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(chart([]string{"fast", "slower", "slow", "none"}, []float64{1e6, 1e4, 100, 0}, count)), "\n")
	if len(lines) != 4 {
		t.Fatalf("%d lines", len(lines))
	}
	var bars []int
	for _, l := range lines {
		bars = append(bars, strings.Count(l, "█"))
	}
	if bars[0] != 48 || bars[1] != 24 || bars[2] != 1 || bars[3] != 0 {
		t.Errorf("bars %v, want 48, 24, 1 and 0", bars)
	}
	if !strings.HasPrefix(lines[0], "fast    █") || !strings.HasSuffix(lines[0], " 1,000,000") || lines[3] != "none     0" {
		t.Errorf("lines %q", lines)
	}
}

func TestWrap(t *testing.T) {
	text := wrap(strings.Repeat("wörd ", 60))
	lines := strings.Split(text, "\n")
	if len(lines) != 3 || utf8.RuneCountInString(lines[0]) != 114 || strings.Count(text, "wörd") != 60 {
		t.Errorf("%d lines, the first of %d characters", len(lines), utf8.RuneCountInString(lines[0]))
	}
	if got := hang(strings.Repeat("word ", 30)); strings.Count(got, "\n  word") != 1 {
		t.Errorf("got\n%s", got)
	}
}

func TestNamesOfModules(t *testing.T) {
	for path, want := range map[string]string{
		"github.com/redis/go-redis/v9": "go-redis", "golang.org/x/time": "time", "github.com/a/vault": "vault", "x/v2": "x",
	} {
		if got := short(path); got != want {
			t.Errorf("%s is short %s, want %s", path, got, want)
		}
	}
	m := machine{modules: map[string]string{"golang.org/x/time": "v1.2.3"}, cores: 4}
	if got := m.version("golang.org/x/time"); got != "time v1.2.3" || m.version("") != "" {
		t.Errorf("version %q, of none %q", got, m.version(""))
	}
	if m.busy("1.99, 9, 9") || !m.busy("2.00, 0, 0") || m.busy("unknown") {
		t.Error("a machine of four cores is busy from a load of 2 on")
	}
}
