// Scaling measures what one Redis has to do for a fleet, for docs/scaling.md: a
// fleet of limiters in this process shares a server that it starts.
//
//	cd bench && go run ./scaling
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/resilient-go/limiter/bench/server"
)

func main() {
	d := flag.Duration("duration", 10*time.Second, "how long each `case` is measured")
	flag.Parse()
	redis.SetLogger(&logging.VoidLogger{})
	if err := run(*d); err != nil {
		fmt.Fprintln(os.Stderr, "scaling:", err)
		os.Exit(1)
	}
}

func run(d time.Duration) error {
	fmt.Println("| instances | keys | horizon | requests/s | demand/limit | calls/s | script, µs | Redis CPU per call, µs | of one core | bytes per key | refused | degraded |")
	fmt.Println("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	for _, c := range cases {
		r, err := server.Start()
		if err != nil {
			return err
		}
		f, err := c.measure(r, d)
		if closing := r.Close(); err == nil {
			err = closing
		}
		if err != nil {
			return fmt.Errorf("%+v: %w", c, err)
		}
		fmt.Printf("| %d | %d | %v | %.0f | %.1f | %.0f | %.1f | %.1f | %.1f %% | %.0f | %.1f %% | %.1f %% |\n",
			c.instances, c.keys, c.horizon, f.requests, c.load, f.calls, f.script, f.cpu, 100*f.core, f.bytes, 100*f.refused, 100*f.degraded)
	}
	return nil
}
