// Simulate: what a fleet of limiters does with one key, on a fake clock.
//
//	go run ./examples/simulate -instances 20 -limit 1000/s -load 2
//	go run ./examples/simulate -h
//
// The limiters and the Redis scripts are the real ones; time, network and load are
// made up, and one seed gives one result. No Redis is needed.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"
)

func main() {
	debug.SetGCPercent(400) // a fleet is small, and its messages are many
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program: it returns the exit status.
func run(args []string, out, complaints io.Writer) int {
	o, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, usage)
		return 0
	case err != nil:
		fmt.Fprintf(complaints, "simulate: %v\n(-h lists the flags)\n", err)
		return 2
	}
	begun := time.Now()
	report, err := o.scenario.Run()
	if err != nil {
		fmt.Fprintf(complaints, "simulate: %v\n(-h lists the flags)\n", err)
		return 2 // a combination of flags that a limiter rejects
	}
	fmt.Fprintf(complaints, "%v and %d requests simulated in %v\n",
		o.scenario.Duration, report.Offered, time.Since(begun).Round(time.Millisecond))

	if o.csv != "" {
		if err := writeCSV(o.csv, &o.scenario, report); err != nil {
			fmt.Fprintln(complaints, "simulate:", err)
			return 1
		}
	}
	write := writeTable
	if o.json {
		write = writeJSON
	}
	if err := write(out, &o.scenario, report); err != nil {
		fmt.Fprintln(complaints, "simulate:", err)
		return 1
	}
	return 0
}
