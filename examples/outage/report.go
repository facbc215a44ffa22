package main

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/resilient-go/limiter/hybrid"
)

// A report prints a row for each half second, and between the rows what happens.
type report struct {
	begun time.Time

	mu       sync.Mutex // guards what follows
	out      io.Writer
	last     time.Time             // of a row
	admitted map[hybrid.Source]int // since the last row
	took     []time.Duration       // decisions since the last row
	total    int
	paid     int // not by the outage policy
	slowest  time.Duration
}

func newReport(out io.Writer) *report {
	return &report{begun: time.Now(), last: time.Now(), out: out, admitted: map[hybrid.Source]int{}}
}

func (r *report) decision(res hybrid.Result, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.took = append(r.took, took)
	r.slowest = max(r.slowest, took)
	if res.Allowed {
		r.admitted[res.Source]++
		r.total++
		if res.Source != hybrid.SourceDegraded {
			r.paid++
		}
	}
}

// row prints what was decided since the last one.
func (r *report) row() {
	r.mu.Lock()
	defer r.mu.Unlock()
	since := time.Since(r.last) // not half a second if Redis took its time to start
	r.last = time.Now()
	n := 0
	for _, v := range r.admitted {
		n += v
	}
	part := func(s hybrid.Source) int { return r.admitted[s] * 100 / max(n, 1) }
	r.print("admitted %4d/s: lease %3d %%, Redis %3d %%, outage policy %3d %%; p99 %v",
		int(float64(n)/since.Seconds()+0.5), part(hybrid.SourceLease), part(hybrid.SourceRedis), part(hybrid.SourceDegraded),
		percentile(r.took, 99).Round(10*time.Microsecond))
	r.admitted, r.took = map[hybrid.Source]int{}, nil
}

// event prints an event of an instance, but for the breaker's and those that come
// each second.
func (r *report) event(instance int, e hybrid.Event) {
	switch v := e.(type) {
	case hybrid.Degraded:
		r.say("instance %d: degraded (%s), goes on with 1/%d of the limit", instance, v.Class, v.Instances)
	case hybrid.Recovered:
		r.say("instance %d: recovered after %v", instance, v.Duration.Round(time.Millisecond))
	}
}

// say prints a line between the rows.
func (r *report) say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.print(format, args...)
}

// sum prints the end.
func (r *report) sum() {
	r.mu.Lock()
	defer r.mu.Unlock()
	length := time.Since(r.begun)
	r.print("in all %d admitted, %d from leases and by Redis, where one bucket admits at most %d; the slowest decision took %v",
		r.total, r.paid, limit.Burst()+int(length.Seconds()*float64(limit.Count())), r.slowest.Round(time.Millisecond))
}

// print prints a line; the lock is held.
func (r *report) print(format string, args ...any) {
	fmt.Fprintf(r.out, "%5.2f s  %s\n", time.Since(r.begun).Seconds(), fmt.Sprintf(format, args...))
}

// percentile is the least duration that p of a hundred do not exceed.
func percentile(all []time.Duration, p int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[(len(sorted)*p+99)/100-1]
}
