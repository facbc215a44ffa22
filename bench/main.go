// Bench puts this library beside what one might use instead, in one run against one
// redis-server that it starts, and writes the figures as a document.
//
//	cd bench && go run . -out ../docs/benchmarks.md
//	go run . -only A,B -duration 200ms -rounds 1 -out -
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/resilient-go/limiter/bench/peers"
	"github.com/resilient-go/limiter/bench/server"
)

// scenarios are all there are.
var scenarios = []scenario{hot, many, shared, outage, far, memory}

func main() {
	err := run(os.Args[1:], os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type options struct {
	out      string
	duration time.Duration
	rounds   int
	todo     []scenario
}

func parse(args []string, complaints io.Writer) (options, error) {
	o := options{}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(complaints)
	f.StringVar(&o.out, "out", "-", "the `file` to write; - is standard output")
	f.DurationVar(&o.duration, "duration", time.Second, "how long each measurement takes")
	f.IntVar(&o.rounds, "rounds", 3, "how many measurements a median is taken of")
	only := f.String("only", "A,B,C,D,E,M", "the `letters` of the scenarios")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	letters := strings.Split(*only, ",")
	for _, s := range scenarios {
		if slices.Contains(letters, s.letter) {
			o.todo = append(o.todo, s)
		}
	}
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("%q is not a flag, and there are no other arguments", f.Arg(0))
	case len(o.todo) != len(letters):
		return o, fmt.Errorf("-only %s: want some of A,B,C,D,E,M, each once", *only)
	case o.rounds < 1 || o.duration < time.Millisecond:
		return o, errors.New("-rounds wants 1 at least, -duration 1ms")
	}
	return o, nil
}

func run(args []string, out, progress io.Writer) (err error) {
	o, err := parse(args, progress)
	if err != nil {
		return err
	}
	// Outages fill the logs of clients.
	redis.SetLogger(&logging.VoidLogger{})
	log.SetOutput(io.Discard)

	before, begun := loadNow(), time.Now()
	r, err := server.Start()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	info, err := r.Info("server")
	if err != nil {
		return err
	}
	b := &bench{
		redis: r, peers: peers.All(), duration: o.duration, rounds: o.rounds,
		progress: progress, rows: map[row][]sample{},
	}
	if err := b.run(o.todo); err != nil {
		return err
	}
	d := &document{
		b: b, todo: o.todo, command: "cd bench && go run . " + strings.Join(args, " "), date: begun, took: time.Since(begun),
		machine: thisMachine(info["redis_version"]), loads: [2]string{before, loadNow()},
	}
	if o.out == "-" {
		_, err = io.WriteString(out, d.String())
		return err
	}
	return os.WriteFile(o.out, []byte(d.String()), 0o644)
}
