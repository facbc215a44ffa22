package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/resilient-go/limiter/internal/sim"
)

// writeTable writes what came out for a reader, with a word about each figure.
func writeTable(out io.Writer, s *sim.Scenario, r *sim.Report) error {
	var b bytes.Buffer
	rate := perSecond(s)
	fmt.Fprintf(&b, "%s, burst %d, on %d instances: demand %v times the rate, %s%s\n",
		s.Limit.WithBurst(s.Limit.Count()), r.Burst, s.Instances, s.Load, s.Skew, also(s))
	fmt.Fprintf(&b, "horizon %v, local share %v, round trip %v, %v, seed %d\n\n", s.Horizon, s.Share, s.RTT, s.Duration, s.Seed)

	row := func(name, value, what string) {
		b.WriteString(strings.TrimRight(fmt.Sprintf("%-20s %10s   %s", name, value, what), " ") + "\n")
	}
	row("use", fmt.Sprintf("%.1f %%", 100*r.Use), "of what one bucket, asked for each request, would have admitted")
	row("refused wrongly", fmt.Sprintf("%.2f %%", 100*r.WrongRefusals), "of the requests: refused beyond what that bucket would have refused")
	row("worst second", fmt.Sprint(r.WorstWindow), "admitted within one second; "+boundText(s, r, rate))
	row("calls per second", fmt.Sprintf("%.1f", r.CallsPerSecond),
		fmt.Sprintf("to Redis, by all instances; one for each request would be %.0f", float64(r.Offered)/s.Duration.Seconds()))
	row("calls per decision", fmt.Sprintf("%.3f", r.CallsPerDecision), "0 would be no Redis, 1 is a call for each request")
	row("fairness", fmt.Sprintf("%.2f", r.Fairness), "least part of its demand that an instance got, of the largest; 1 is fair")
	row("script calls", fmt.Sprint(r.Scripts), "that Redis ran")
	if r.Opened > 0 {
		row("breaker opened", fmt.Sprint(r.Opened), "times, all instances together")
	}

	fmt.Fprintf(&b, "\ndecisions            %10d\n", r.Offered)
	for _, source := range slices.Sorted(maps.Keys(r.BySource)) {
		row("  "+source, fmt.Sprint(r.BySource[source]), meaning[source])
	}
	b.WriteByte('\n')
	chart(&b, s, r)
	_, err := out.Write(b.Bytes())
	return err
}

// meaning says what the sources of decisions are.
var meaning = map[string]string{
	"lease":             "admitted here, from permits on lease, without a call",
	"redis":             "admitted by Redis",
	"degraded":          "admitted here while Redis could not be asked: a part of the limit each",
	"refused denied":    "refused here: Redis had just said no, or the lease meters",
	"refused redis":     "refused by Redis",
	"refused prefilter": "refused here, beyond the local share",
	"refused degraded":  "refused here while Redis could not be asked",
}

func boundText(s *sim.Scenario, r *sim.Report, rate float64) string {
	if s.Outage > 0 || r.Bound > float64(r.Burst) {
		return fmt.Sprintf("the bound is burst + rate = %.0f, and with an outage %.0f", rate+float64(r.Burst), rate+r.Bound)
	}
	return fmt.Sprintf("the bound is burst + rate = %.0f", rate+r.Bound)
}

// also says what happens besides.
func also(s *sim.Scenario) (text string) {
	if s.Shift > 0 {
		text += fmt.Sprintf(", moves every %v", s.Shift)
	}
	if s.Crash > 0 {
		text += fmt.Sprintf(", a crash every %v", s.Crash)
	}
	if s.Outage > 0 {
		text += fmt.Sprintf(", Redis gone for %v", s.Outage)
	}
	return text
}

func perSecond(s *sim.Scenario) float64 {
	return float64(s.Limit.Count()) / s.Limit.Period().Seconds()
}
