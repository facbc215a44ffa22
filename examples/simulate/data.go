package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/resilient-go/limiter/internal/sim"
)

// result is the JSON object.
type result struct {
	Use               float64 `json:"use"`                 // of what one bucket would have admitted
	WorstWindowExcess float64 `json:"worst_window_excess"` // most admitted within 1 s, less the rate
	Burst             int64   `json:"burst"`
	CallsPerSecond    float64 `json:"calls_per_second"`
	Fairness          float64 `json:"fairness"`

	Bound            float64          `json:"bound"` // of worst_window_excess
	WorstWindow      int64            `json:"worst_window"`
	WorstExcess      float64          `json:"worst_excess"` // in any window of any length, over what the rate is worth in it
	WrongRefusals    float64          `json:"wrong_refusals"`
	CallsPerDecision float64          `json:"calls_per_decision"`
	Calls            uint64           `json:"calls"`
	ScriptCalls      uint64           `json:"script_calls"`
	Offered          int64            `json:"offered"`
	Admitted         int64            `json:"admitted"`
	Reference        int64            `json:"reference"`
	Decisions        map[string]int64 `json:"decisions"`
	PerInstance      []int64          `json:"admitted_per_instance"`
	Per100ms         []int64          `json:"admitted_per_100ms"`
	BreakerOpened    uint64           `json:"breaker_opened"`
	Crashes          int              `json:"crashes"`
	Scenario         scenario         `json:"scenario"`
}

// scenario repeats the flags.
type scenario struct {
	Instances int     `json:"instances"`
	Limit     string  `json:"limit"`
	Rate      float64 `json:"rate_per_second"`
	Load      float64 `json:"load"`
	Skew      string  `json:"skew"`
	Shift     string  `json:"shift"`
	RTT       string  `json:"rtt"`
	Horizon   string  `json:"horizon"`
	Share     float64 `json:"share"`
	Crash     string  `json:"crash"`
	Outage    string  `json:"outage"`
	Duration  string  `json:"duration"`
	Seed      uint64  `json:"seed"`
}

func writeJSON(out io.Writer, s *sim.Scenario, r *sim.Report) error {
	e := json.NewEncoder(out)
	return e.Encode(result{
		Use: r.Use, WorstWindowExcess: r.WorstWindowExcess, Burst: r.Burst,
		CallsPerSecond: r.CallsPerSecond, Fairness: r.Fairness,
		Bound: r.Bound, WorstWindow: r.WorstWindow, WorstExcess: r.Worst, WrongRefusals: r.WrongRefusals,
		CallsPerDecision: r.CallsPerDecision, Calls: r.Calls, ScriptCalls: r.Scripts,
		Offered: r.Offered, Admitted: r.Admitted, Reference: r.Reference,
		Decisions: r.BySource, PerInstance: r.PerInstance, Per100ms: r.Bins,
		BreakerOpened: r.Opened, Crashes: len(r.Crashes),
		Scenario: scenario{
			Instances: s.Instances, Limit: s.Limit.String(), Rate: perSecond(s), Load: s.Load, Skew: s.Skew,
			Shift: s.Shift.String(), RTT: s.RTT.String(), Horizon: s.Horizon.String(), Share: s.Share,
			Crash: s.Crash.String(), Outage: s.Outage.String(), Duration: s.Duration.String(), Seed: s.Seed,
		},
	})
}

// writeCSV writes a line per 100 ms: where it begins, in seconds, what was
// admitted in it, and what the rate is worth in it.
func writeCSV(name string, s *sim.Scenario, r *sim.Report) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("-csv: %w", err)
	}
	defer func() {
		if closing := f.Close(); err == nil && closing != nil {
			err = fmt.Errorf("-csv: %w", closing)
		}
	}()
	w := bufio.NewWriter(f)
	limit := strconv.FormatFloat(perSecond(s)/float64(time.Second/sim.BinWidth), 'g', -1, 64)
	fmt.Fprintln(w, "time_s,admitted,limit")
	for i, n := range r.Bins {
		fmt.Fprintf(w, "%.1f,%d,%s\n", float64(i)*sim.BinWidth.Seconds(), n, limit)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("-csv: %w", err)
	}
	return nil
}
