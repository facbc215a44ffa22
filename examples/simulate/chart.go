package main

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/resilient-go/limiter/internal/sim"
)

// The size of the chart in characters.
const (
	columns = 60
	rows    = 10
)

// chart draws what was admitted per 100 ms, each column the mean of a few of them,
// and the limit.
func chart(b *bytes.Buffer, s *sim.Scenario, r *sim.Report) {
	per := (len(r.Bins) + columns - 1) / columns
	limit := perSecond(s) * sim.BinWidth.Seconds()
	means, top := []float64{}, 1.25*limit
	for from := 0; from < len(r.Bins); from += per {
		sum, n := 0.0, 0
		for _, x := range r.Bins[from:min(from+per, len(r.Bins))] {
			sum += float64(x)
			n++
		}
		means = append(means, sum/float64(n))
		top = math.Max(top, sum/float64(n))
	}
	step := top / rows
	limitRow := int(math.Round(limit / step)) // counted from below, the axis being 0

	fmt.Fprintf(b, "admitted per 100 ms (a column is the mean of %v), and the limit -\n", sim.BinWidth*time.Duration(per))
	for row := rows; row >= 1; row-- {
		label := ""
		switch row {
		case rows:
			label = short(top)
		case limitRow:
			label = short(limit)
		}
		line := fmt.Sprintf("%9s |", label)
		for _, m := range means {
			switch {
			case m >= (float64(row)-0.5)*step:
				line += "#"
			case row == limitRow:
				line += "-"
			default:
				line += " "
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	fmt.Fprintf(b, "%9s +%s\n", "0", strings.Repeat("-", len(means)))
	end := s.Duration.String()
	fmt.Fprintf(b, "%9s  0s%*s\n", "", len(means)-2, end)
}

// short writes a number with three digits that count.
func short(x float64) string {
	if x >= 100 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.3g", x)
}
