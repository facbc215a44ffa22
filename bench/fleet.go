package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/resilient-go/limiter/bench/load"
	"github.com/resilient-go/limiter/bench/peers"
)

const (
	used   = "used"
	excess = "excess"
	calls  = "calls"
)

// A fleet is instances of one limiter, each with a client of its own, that share one
// limit.
type fleet struct {
	peer      peers.Peer
	instances []peers.Limiter
}

func (b *bench) openFleet(p peers.Peer, s peers.Setup) (*fleet, error) {
	f := &fleet{peer: p}
	s.Addr, s.Name = b.redis.Addr, b.name()
	for range s.Instances {
		lim, err := p.Open(s)
		if err != nil {
			f.close()
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		f.instances = append(f.instances, lim)
	}
	// Connections are open before the load comes. What goes wrong shows under it.
	for _, lim := range f.instances {
		_, _ = lim.Allow(context.Background(), "before")
	}
	return f, nil
}

// close ends the instances. What they have to say about it is nobody's business
// after an outage.
func (f *fleet) close() {
	var all sync.WaitGroup
	for _, lim := range f.instances {
		all.Go(func() { _ = lim.Close() })
	}
	all.Wait()
}

// together puts the same open load on the fleets of all peers at once, and returns
// the calls of each.
func (b *bench) together(ps []peers.Peer, s peers.Setup, o load.Open, meanwhile func(start time.Time) error) ([][]load.Call, error) {
	if err := b.redis.Flush(); err != nil {
		return nil, err
	}
	var fleets []*fleet
	defer func() {
		for _, f := range fleets {
			f.close()
		}
	}()
	for _, p := range ps {
		f, err := b.openFleet(p, s)
		if err != nil {
			return nil, err
		}
		fleets = append(fleets, f)
	}
	var (
		start = time.Now().Add(100 * time.Millisecond)
		all   sync.WaitGroup
		got   = make([][]load.Call, len(fleets))
	)
	for i, f := range fleets {
		mine := o
		mine.Ask = func(instance int) (bool, error) {
			return f.instances[instance].Allow(context.Background(), "hot")
		}
		// Not all at the same instants.
		all.Go(func() { got[i] = mine.Run(start.Add(time.Duration(i) * 300 * time.Microsecond)) })
	}
	err := meanwhile(start)
	all.Wait()
	return got, err
}

// nothing happens.
func nothing(time.Time) error { return nil }

const (
	fleetSize = 8
	fleetRate = 200
	fleetFull = 100 // burst
)

// evenly and skewed are twice the rate of the limit.
var fleetLoads = map[string][]float64{
	"even":   {50, 50, 50, 50, 50, 50, 50, 50},
	"skewed": {204, 102, 51, 25, 10, 4, 2, 2},
}

var shared = scenario{
	letter: "C", title: "Eight instances on one limit",
	about: "Limit 200 per second, burst 100, for eight instances together. Twice as much is asked for, at fixed times: 400 per second in all, " +
		"by each the same (even), or 204 by the first, half of that by the second, and so on (skewed). All limiters run at the same time, " +
		"each with its own keys.",
	cases:   []string{"even", "skewed"},
	columns: []column{{used, percent}, {excess, figure}, {p50, span}, {p99, span}, {calls, count}, {failed, percent}},
	run: func(b *bench, round int) error {
		for _, how := range []string{"even", "skewed"} {
			ps := b.turn("C", round)
			o := load.Open{Rates: fleetLoads[how], Duration: 4 * b.duration}
			got, err := b.together(ps, peers.Setup{Period: time.Second, Rate: fleetRate, Burst: fleetFull, Instances: fleetSize}, o, nothing)
			if err != nil {
				return err
			}
			for i, p := range ps {
				b.put("C", how, p, fleetSample(got[i], fleetRate, fleetFull, o.Duration))
			}
		}
		return nil
	},
}

// fleetSample compares what was admitted with what one bucket would have admitted
// under a demand that always exceeds the rate, and the worst window with the burst.
func fleetSample(all []load.Call, rate, burst int, d time.Duration) sample {
	var (
		at  []time.Duration
		bad int
		lat load.Hist
	)
	for _, c := range all {
		lat.Add(c.Done - c.Begun)
		if c.Err != nil {
			bad++
		}
		if c.Admitted && c.Done <= d {
			at = append(at, c.Done)
		}
	}
	n := float64(max(len(all), 1))
	return sample{
		used:   float64(len(at)) / (float64(rate)*d.Seconds() + float64(burst)),
		excess: load.Excess(at, float64(rate)) / float64(burst),
		p50:    float64(lat.Quantile(0.50)),
		p99:    float64(lat.Quantile(0.99)),
		calls:  n,
		failed: float64(bad) / n,
	}
}
