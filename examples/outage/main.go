// Outage: a fleet under load while Redis is killed, restarted, frozen and thawed, told
// as a time line.
//
//	go run ./examples/outage
//	go run ./examples/outage -redis sentinel
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

func main() {
	kind := flag.String("redis", "auto", "server: a redis-server process; mini: miniredis inside this program; "+
		"sentinel: a master, a replica and three sentinels; auto: server if redis-server is on PATH, else mini")
	flag.Parse()
	redis.SetLogger(&logging.VoidLogger{}) // go-redis would log each failed dial
	if err := run(context.Background(), os.Stdout, *kind); err != nil {
		fmt.Fprintln(os.Stderr, "outage:", err)
		os.Exit(1)
	}
}

const (
	instances = 3
	load      = 400 // requests per second, twice the limit
	row       = 500 * time.Millisecond
)

var limit = hybrid.PerSecond(200)

// A step does something to Redis and lets time pass.
type step struct {
	name string
	do   func()
	rows int
}

func run(ctx context.Context, out io.Writer, kind string) error {
	owner := &redistest.Owner{}
	defer owner.Close()
	where, client, steps, err := connect(owner, kind)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%v for %d instances, %d requests per second; Redis: %s\n", limit, instances, load, where)
	return tell(ctx, out, client, steps, owner.Try)
}

// tell runs a fleet through the steps.
func tell(ctx context.Context, out io.Writer, client func() redis.UniversalClient, steps []step, try func(func()) error) error {
	r := newReport(out)
	f, err := newFleet(client, r)
	if err != nil {
		return err
	}
	defer f.close()
	for _, s := range steps {
		if s.do != nil {
			r.say("-- %s", s.name)
			if err := try(s.do); err != nil {
				return err
			}
		}
		for range s.rows {
			select {
			case <-time.After(row):
				r.row()
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	f.close()
	r.sum()
	return nil
}
