package main

import (
	"fmt"
	"time"

	"github.com/resilient-go/limiter/bench/load"
	"github.com/resilient-go/limiter/bench/server"
)

// plenty is a rate that nobody reaches.
const plenty = 100_000_000

var closedColumns = []column{
	{perSecond, count},
	{nsPerOp, figure},
	{p50, span},
	{p99, span},
	{p999, span},
	{allocs, figure},
	{commands, ratio},
	{scripts, ratio},
	{cpu, span},
	{redisCPU, span},
	{heap, size},
	{admitted, percent},
	{failed, percent},
	{degraded, percent},
}

var goroutines = []int{1, 2, 8, 64}

func callers(n int) string {
	if n == 1 {
		return "1 goroutine"
	}
	return fmt.Sprintf("%d goroutines", n)
}

var hot = scenario{
	letter: "A", title: "One hot key",
	about:   "Goroutines ask for one key as fast as they can. The limit, 100 million per second, refuses nobody.",
	cases:   []string{callers(1), callers(2), callers(8), callers(64)},
	columns: closedColumns,
	run: func(b *bench, round int) error {
		for _, n := range goroutines {
			for _, p := range b.turn("A", round) {
				s, err := b.closedCell(p, b.redis.Addr, load.Closed{Goroutines: n, Duration: b.duration, Keys: [][]string{load.Hot()}}, b.duration/5)
				if err != nil {
					return err
				}
				b.put("A", callers(n), p, s)
			}
		}
		return nil
	},
}

const manyKeys = 100_000

var many = scenario{
	letter: "B", title: "100,000 keys",
	about: "8 goroutines ask for keys that a Zipf law of exponent 1.1 draws, each from a sequence of its own. Each key has the limit of A. " +
		"Measured after as long a time to warm up, so that the frequent keys were asked for before. " +
		"The heap is that of the keys that were asked for so far, so that who decides more has more of them.",
	cases:   []string{callers(8)},
	columns: closedColumns,
	run: func(b *bench, round int) error {
		names := load.Names(manyKeys)
		keys := make([][]string, 8)
		for i := range keys {
			keys[i] = load.Zipf(names, 1.1, uint64(8*round+i))
		}
		for _, p := range b.turn("B", round) {
			s, err := b.closedCell(p, b.redis.Addr, load.Closed{Goroutines: len(keys), Duration: b.duration, Keys: keys}, b.duration)
			if err != nil {
				return err
			}
			b.put("B", callers(8), p, s)
		}
		return nil
	},
}

var distances = []time.Duration{500 * time.Microsecond, 2 * time.Millisecond}

var far = scenario{
	letter: "E", title: "Redis far away",
	about:   "As A with 8 goroutines, with a proxy before Redis that holds each reply for a round trip and lets many be under way.",
	cases:   []string{distances[0].String(), distances[1].String()},
	columns: closedColumns,
	run: func(b *bench, round int) error {
		for _, d := range distances {
			proxy, err := server.NewFar(b.redis.Addr, d)
			if err != nil {
				return err
			}
			for _, p := range b.turn("E", round) {
				s, err := b.closedCell(p, proxy.Addr, load.Closed{Goroutines: 8, Duration: b.duration, Keys: [][]string{load.Hot()}}, b.duration/5)
				if err != nil {
					return err
				}
				b.put("E", d.String(), p, s)
			}
			if err := proxy.Close(); err != nil {
				return err
			}
		}
		return nil
	},
}
