package main

import (
	"flag"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/sim"
)

// options are what the command line says.
type options struct {
	scenario sim.Scenario
	json     bool
	csv      string
}

const usage = `Simulate a fleet of rate limiters that share one limit, on one key.

  go run ./examples/simulate [flags]

How much of the limit is used, how far can a second exceed it, how many calls
does Redis get, is it fair? Change -horizon and -share until you like the answer.

The fleet
  -instances N      how many instances share the limit (20)
  -limit LIMIT      such as 1000/s, 100/m, 7/3s, 5000/h (1000/s)
  -burst N          how many may pass at once (0: as many as the limit counts)
  -horizon D        for how long a lease should last: hybrid.WithLeaseHorizon (200ms)
  -share S          the most that one instance may take, as a part of the limit,
                    above 0, at most 1: hybrid.WithLocalShare (1)

The demand: requests for one token that arrive at random
  -load X           demand in multiples of the limit's rate (2)
  -skew HOW         how it falls on the instances (even):
                      even    equally
                      zipf    the k-th gets 1/k of what the first gets
                      1.2     a Zipf law of that exponent
                      90/10   90 parts on the first, 10 on all others
  -shift D          it moves from one half of the fleet to the other, and back,
                    each this often (0: it stays)

The world
  -rtt D            round trip to Redis (2ms); the remote time-out is the default,
                    50ms, or three round trips if that is more
  -crash D          one instance dies this often, and a new one takes its place
                    (0: none)
  -outage D         Redis is gone for that long, from a third of the duration on
                    (0: never)

The run
  -duration D       time to simulate (20s)
  -seed N           another seed gives other chances, the same one the same (1)

The output: a table and a chart, unless
  -json             one JSON object instead
  -csv FILE         write time, tokens admitted per 100 ms and limit to FILE besides

Exit status: 0, 1 if the output cannot be written, 2 for flags that make no sense.
`

// mostRequests ends within the hour.
const mostRequests = 2e9

// parse reads the command line.
func parse(args []string) (options, error) {
	o := options{scenario: sim.Scenario{
		Instances: 20, Limit: hybrid.PerSecond(1000), Load: 2, Skew: "even",
		RTT: 2 * time.Millisecond, Horizon: hybrid.DefaultLeaseHorizon, Share: hybrid.DefaultLocalShare,
		Duration: 20 * time.Second, Seed: 1,
	}}
	s, burst := &o.scenario, 0
	f := flag.NewFlagSet("simulate", flag.ContinueOnError)
	f.SetOutput(io.Discard) // run says what there is to say
	f.Func("instances", "", integer(&s.Instances, 1, 100_000))
	f.Func("limit", "", limit(&s.Limit))
	f.Func("burst", "", integer(&burst, 0, math.MaxInt))
	f.Func("load", "", number(&s.Load, 1e6))
	f.Func("skew", "", func(text string) error {
		_, err := sim.Weights(text, 2)
		s.Skew = text
		return err
	})
	f.Func("shift", "", duration(&s.Shift, 0))
	f.Func("rtt", "", duration(&s.RTT, 0))
	f.Func("horizon", "", duration(&s.Horizon, 1))
	f.Func("share", "", number(&s.Share, 1))
	f.Func("crash", "", duration(&s.Crash, 0))
	f.Func("outage", "", duration(&s.Outage, 0))
	f.Func("duration", "", duration(&s.Duration, time.Millisecond))
	f.Func("seed", "", func(text string) (err error) {
		if s.Seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			return fmt.Errorf("want a number from 0 on")
		}
		return nil
	})
	f.BoolVar(&o.json, "json", false, "")
	f.StringVar(&o.csv, "csv", "", "")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("%q is not a flag, and there are no other arguments", f.Arg(0))
	}
	if burst > 0 {
		s.Limit = s.Limit.WithBurst(burst)
	}
	return o, check(s)
}

// check looks at what flags say together, and a limiter does not reject.
func check(s *sim.Scenario) error {
	switch {
	case s.Requests() > mostRequests:
		return fmt.Errorf("-limit, -load and -duration make %.2g requests: at most %.2g can be simulated", s.Requests(), float64(mostRequests))
	case s.Crash > 0 && s.Duration/s.Crash > 10_000:
		return fmt.Errorf("-crash %v within -duration %v makes more than 10,000 crashes", s.Crash, s.Duration)
	case s.Outage > s.Duration-s.Duration/3:
		return fmt.Errorf("-outage %v begins at a third of -duration %v and does not end within it", s.Outage, s.Duration)
	case s.Shift > 0 && s.Instances < 2:
		return fmt.Errorf("-shift needs two -instances at least")
	}
	return nil
}

func integer(p *int, least, most int) func(string) error {
	return func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < least || n > most {
			if most == math.MaxInt {
				return fmt.Errorf("want an integer from %d on", least)
			}
			return fmt.Errorf("want an integer from %d to %d", least, most)
		}
		*p = n
		return nil
	}
}

func number(p *float64, most float64) func(string) error {
	return func(text string) error {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || !(x > 0 && x <= most) {
			return fmt.Errorf("want a number above 0, at most %v", most)
		}
		*p = x
		return nil
	}
}

func duration(p *time.Duration, least time.Duration) func(string) error {
	return func(text string) error {
		d, err := time.ParseDuration(text)
		switch {
		case err != nil:
			return fmt.Errorf("want a duration such as 200ms or 20s")
		case d < least:
			return fmt.Errorf("want %v at least", least)
		}
		*p = d
		return nil
	}
}

func limit(p *hybrid.Limit) func(string) error {
	return func(text string) error {
		l, err := hybrid.ParseLimit(text)
		switch {
		case err != nil:
			return err
		case l == hybrid.Unlimited || l == hybrid.Blocked:
			return fmt.Errorf("want a rate: there is nothing to simulate")
		}
		*p = l
		return nil
	}
}
