package main

import (
	"context"
	"fmt"
	"runtime"
	"syscall"
	"time"

	"github.com/resilient-go/limiter/bench/load"
	"github.com/resilient-go/limiter/bench/peers"
	"github.com/resilient-go/limiter/bench/server"
)

// A sample is what one measurement of one limiter gave, by the name of the column.
type sample map[string]float64

// Columns of samples. Latencies are in nanoseconds.
const (
	perSecond = "decisions/s"
	nsPerOp   = "ns/op"
	p50       = "p50"
	p99       = "p99"
	p999      = "p99.9"
	longest   = "max"
	allocs    = "allocs/op"
	commands  = "commands"
	scripts   = "scripts"
	cpu       = "CPU"
	redisCPU  = "Redis CPU"
	heap      = "heap"
	admitted  = "admitted"
	degraded  = "degraded"
	failed    = "errors"
)

// closedCell measures a closed load on one limiter, after a time to warm up.
func (b *bench) closedCell(p peers.Peer, addr string, c load.Closed, warmUp time.Duration) (sample, error) {
	if err := b.redis.Flush(); err != nil {
		return nil, err
	}
	s := peers.Setup{Addr: addr, Name: b.name(), Rate: plenty, Burst: plenty, Period: time.Second, Instances: 1}
	before := heapNow()
	lim, err := p.Open(s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	ctx := context.Background()
	c.Ask = func(key string) (bool, error) { return lim.Allow(ctx, key) }
	c.TimeOneIn = 1
	if p.Way != peers.Asks {
		c.TimeOneIn = 64
	}
	warm := c
	warm.Duration = warmUp
	warm.Run()

	runtime.GC()
	started, err := b.redis.Usage()
	if err != nil {
		return nil, err
	}
	alone := lim.Degraded()
	mallocs, used := mallocsNow(), cpuNow()
	out := c.Run()
	used, mallocs = cpuNow()-used, mallocsNow()-mallocs
	ended, err := b.redis.Usage()
	if err != nil {
		return nil, err
	}
	grown := heapNow() - before
	if err := lim.Close(); err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	cell := closedSample(out, ended.Sub(started), mallocs, used, grown)
	cell[degraded] = float64(lim.Degraded()-alone) / float64(max(out.Decisions, 1))
	return cell, nil
}

// closedSample works out the columns.
func closedSample(out load.Outcome, u server.Usage, mallocs uint64, used time.Duration, grown int64) sample {
	n := float64(max(out.Decisions, 1))
	return sample{
		perSecond: n / out.Elapsed.Seconds(),
		nsPerOp:   float64(out.Elapsed) / n,
		p50:       float64(out.Latency.Quantile(0.50)),
		p99:       float64(out.Latency.Quantile(0.99)),
		p999:      float64(out.Latency.Quantile(0.999)),
		allocs:    float64(mallocs) / n,
		commands:  float64(u.Commands) / n,
		scripts:   float64(u.Scripts) / n,
		cpu:       float64(used) / n,
		redisCPU:  float64(u.CPU) / n,
		heap:      float64(max(grown, 0)),
		admitted:  float64(out.Admitted) / n,
		failed:    float64(out.Errors) / n,
	}
}

// cpuNow is the processor time of this program, without the server's.
func cpuNow() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func mallocsNow() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// heapNow is what is in use after a collection.
func heapNow() int64 {
	for range 3 { // a pool keeps what it has over one collection
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// medians takes the median of each column.
func medians(samples []sample) sample {
	columns := map[string][]float64{}
	for _, s := range samples {
		for name, x := range s {
			columns[name] = append(columns[name], x)
		}
	}
	m := sample{}
	for name, xs := range columns {
		m[name] = load.Median(xs)
	}
	return m
}
