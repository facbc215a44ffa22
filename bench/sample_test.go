package main

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/resilient-go/limiter/bench/load"
	"github.com/resilient-go/limiter/bench/server"
)

func check(t *testing.T, got, want sample) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestSampleOfAClosedLoad(t *testing.T) {
	out := load.Outcome{Decisions: 200, Admitted: 150, Errors: 10, Elapsed: 4 * time.Second}
	for i := range 100 {
		out.Latency.Add(time.Duration(i + 1))
	}
	got := closedSample(out, server.Usage{Commands: 800, Scripts: 200, CPU: 4 * time.Millisecond}, 2600, 2*time.Millisecond, 4096)
	check(t, got, sample{
		perSecond: 50, nsPerOp: 2e7, p50: 50, p99: 99, p999: 100, allocs: 13, commands: 4, scripts: 1,
		cpu: 1e4, redisCPU: 2e4, heap: 4096, admitted: 0.75, failed: 0.05,
	})
	// A heap that has shrunk is nobody's memory.
	if got := closedSample(out, server.Usage{}, 0, 0, -5)[heap]; got != 0 {
		t.Errorf("heap %v", got)
	}
}

// 10 per second and a burst of 5 allow 25 in 2 s; what was answered too late does
// not count, and three at once in the middle are 3 above the rate.
func TestSampleOfAFleet(t *testing.T) {
	var all []load.Call
	for _, at := range []time.Duration{0, time.Second, time.Second, time.Second, 3 * time.Second} {
		all = append(all, load.Call{Begun: at, Done: at + 64, Admitted: true})
	}
	all = append(all, load.Call{Done: 64}, load.Call{Done: 64, Err: errors.New("none")}, load.Call{Done: 127})
	check(t, fleetSample(all, 10, 5, 2*time.Second), sample{
		used: 4.0 / 25, excess: 3.0 / 5, p50: 64, p99: 127, calls: 8, failed: 1.0 / 8,
	})
}

// Only calls that began in the outage count.
func TestSampleOfAnOutage(t *testing.T) {
	call := func(begun, took time.Duration, admitted bool, err error) load.Call {
		return load.Call{Begun: begun, Done: begun + took, Admitted: admitted, Err: err}
	}
	all := []load.Call{
		call(outageAt-1, time.Hour, true, nil),
		call(outageAt, 100*time.Millisecond, true, nil),
		call(outageAt+1, 100*time.Millisecond+1, false, errors.New("none")),
		call(outageAt+outageFor-1, 5, true, nil),
		call(outageAt+2, 5, false, nil),
		call(outageAt+outageFor, time.Hour, true, nil),
	}
	got := outageSample(all)
	if got[longest] != float64(100*time.Millisecond+1) || got[p50] != 5 {
		t.Errorf("longest %v, median %v", got[longest], got[p50])
	}
	delete(got, p50)
	delete(got, p99)
	delete(got, longest)
	check(t, got, sample{used: 2.0 / 300, failed: 0.25, late: 0.25})
}

func TestMediansByColumn(t *testing.T) {
	check(t, medians([]sample{{"a": 3, "b": 10}, {"a": 1, "b": 30}, {"a": 2, "b": 20}}), sample{"a": 2, "b": 20})
}

// What comes while the columns of a table are filled in rounds of different speed.
func TestSpread(t *testing.T) {
	if got := spread([]sample{{perSecond: 90}, {perSecond: 130}, {perSecond: 100}}); got != "-10…+30 %" {
		t.Errorf("got %s", got)
	}
}
