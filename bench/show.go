package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// A column is one of a table: the name of the figure in a sample, and how to show it.
type column struct {
	name string
	show func(float64) string
}

// count is an integer with its thousands apart.
func count(x float64) string {
	digits := strconv.FormatFloat(math.Abs(math.Round(x)), 'f', 0, 64)
	var b strings.Builder
	if math.Round(x) < 0 {
		b.WriteByte('-')
	}
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// figure has three digits that count, or all of a larger number.
func figure(x float64) string {
	switch a := math.Abs(x); {
	case a == 0 || a >= 100:
		return count(x)
	case a < 0.005:
		return "0.00"
	default:
		return strconv.FormatFloat(x, 'f', max(0, 2-int(math.Floor(math.Log10(a)))), 64)
	}
}

// ratio is for numbers that may be very small.
func ratio(x float64) string {
	if x == 0 || math.Abs(x) >= 0.01 {
		return figure(x)
	}
	return strconv.FormatFloat(x, 'g', 2, 64)
}

func percent(x float64) string { return strconv.FormatFloat(100*x, 'f', 1, 64) + " %" }

// span is a time given in nanoseconds.
func span(ns float64) string {
	units := []struct {
		size float64
		name string
	}{{float64(time.Second), "s"}, {float64(time.Millisecond), "ms"}, {float64(time.Microsecond), "µs"}}
	for _, u := range units {
		if ns >= u.size {
			return figure(ns/u.size) + " " + u.name
		}
	}
	return count(ns) + " ns"
}

// size is a number of bytes.
func size(b float64) string {
	switch {
	case b >= 1<<20:
		return figure(b/(1<<20)) + " MiB"
	case b >= 1<<10:
		return figure(b/(1<<10)) + " KiB"
	default:
		return count(b) + " B"
	}
}

// table writes a Markdown table of figures, and list one of words.
func table(head []string, rows [][]string) string { return markdown(head, rows, "---:") }

func list(head []string, rows [][]string) string { return markdown(head, rows, "---") }

func markdown(head []string, rows [][]string, align string) string {
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(head)
	rule := make([]string, len(head))
	for i := range rule {
		rule[i] = align
	}
	rule[0] = "---"
	line(rule)
	for _, r := range rows {
		line(r)
	}
	return b.String()
}

// chart draws bars on a scale of powers of ten, from the power of ten below the
// least value.
func chart(names []string, values []float64, show func(float64) string) string {
	const width = 48
	least, most, pad := math.Inf(1), 0.0, 0
	for i, x := range values {
		if x > 0 {
			least, most = min(least, x), max(most, x)
		}
		pad = max(pad, len(names[i]))
	}
	low := math.Floor(math.Log10(least))
	high := max(math.Log10(most), low+1)
	var b strings.Builder
	for i, x := range values {
		bar := 0
		if x > 0 {
			bar = max(1, int(math.Round(width*(math.Log10(x)-low)/(high-low))))
		}
		fmt.Fprintf(&b, "%-*s  %s %s\n", pad, names[i], strings.Repeat("█", bar), show(x))
	}
	return b.String()
}
