package main

import (
	"fmt"
	"time"

	"github.com/resilient-go/limiter/bench/load"
	"github.com/resilient-go/limiter/bench/peers"
)

const (
	outageInstances = 4
	outageRate      = 100
	outageFull      = 100
	outageAt        = 2 * time.Second
	outageFor       = 3 * time.Second
	outageAfter     = 2 * time.Second
	late            = "late"
)

var outage = scenario{
	letter: "D", title: "Redis gone for three seconds",
	about: "Four instances share a limit of 100 per second, burst 100, and get 200 calls per second together, at fixed times. After 2 s Redis is killed, " +
		"or frozen (stopped, with its connections open); 3 s later it is back, after a kill without data. The figures are of the calls that began " +
		"in those 3 s. All limiters live through the same outages.",
	cases:   []string{"killed", "frozen"},
	columns: []column{{used, percent}, {p50, span}, {p99, span}, {longest, span}, {failed, percent}, {late, percent}},
	run: func(b *bench, round int) error {
		breaks := map[string][2]func() error{
			"killed": {func() error { b.redis.Kill(); return nil }, b.redis.Restart},
			"frozen": {b.redis.Freeze, b.redis.Thaw},
		}
		for _, how := range []string{"killed", "frozen"} {
			ps := b.turn("D", round)
			o := load.Open{Rates: []float64{50, 50, 50, 50}, Duration: outageAt + outageFor + outageAfter}
			got, err := b.together(ps, peers.Setup{Period: time.Second, Rate: outageRate, Burst: outageFull, Instances: outageInstances}, o,
				func(start time.Time) error { return hit(start, breaks[how]) })
			if err != nil {
				return err
			}
			for i, p := range ps {
				b.put("D", how, p, outageSample(got[i]))
			}
		}
		return nil
	},
}

// hit breaks and mends at the times of the outage.
func hit(start time.Time, breaks [2]func() error) error {
	time.Sleep(time.Until(start.Add(outageAt)))
	if err := breaks[0](); err != nil {
		return fmt.Errorf("the outage: %w", err)
	}
	time.Sleep(time.Until(start.Add(outageAt + outageFor)))
	if err := breaks[1](); err != nil {
		return fmt.Errorf("the end of the outage: %w", err)
	}
	return nil
}

// outageSample is about the calls that began in the outage: what was admitted in
// parts of what the rate is worth in it, what callers waited, which part got an
// error, and which part had no answer within 100 ms.
func outageSample(all []load.Call) sample {
	var (
		n, passed, bad, slow float64
		lat                  load.Hist
	)
	for _, c := range all {
		if c.Begun < outageAt || c.Begun >= outageAt+outageFor {
			continue
		}
		n++
		lat.Add(c.Done - c.Begun)
		if c.Err != nil {
			bad++
		}
		if c.Admitted {
			passed++
		}
		if c.Done-c.Begun > 100*time.Millisecond {
			slow++
		}
	}
	n = max(n, 1)
	return sample{
		used:    passed / (outageRate * outageFor.Seconds()),
		p50:     float64(lat.Quantile(0.50)),
		p99:     float64(lat.Quantile(0.99)),
		longest: float64(lat.Max()),
		failed:  bad / n,
		late:    slow / n,
	}
}
