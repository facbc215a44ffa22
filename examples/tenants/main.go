// Tenants: the limit of each tenant follows from its plan, and a plan that changes
// applies while the service runs.
//
//	go run ./examples/tenants
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
)

func main() {
	url := flag.String("redis", "", "URL of a Redis server (default: one inside this program)")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *url); err != nil {
		fmt.Fprintln(os.Stderr, "tenants:", err)
		os.Exit(1)
	}
}

// plans are the limits that are sold. They could come from a configuration file: a
// limit is a text, such as "20/s burst 40".
var plans = map[string]hybrid.Limit{
	"free":   hybrid.PerSecond(3),
	"pro":    hybrid.PerSecond(10),
	"ours":   hybrid.Unlimited,
	"banned": hybrid.Blocked,
}

// A directory knows who has which plan. The limiter asks it often, so it is kept in
// memory: a service would fill it from its database now and then.
type directory struct {
	mu    sync.RWMutex
	plans map[string]string
}

func (d *directory) set(tenant, plan string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.plans[tenant] = plan
}

// limit is that of a tenant. A stranger has the free plan.
func (d *directory) limit(tenant string) hybrid.Limit {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if limit, ok := plans[d.plans[tenant]]; ok {
		return limit
	}
	return plans["free"]
}

var tenants = []string{"ann", "bob", "probes", "mallory", "stranger"}

func newDirectory() *directory {
	return &directory{plans: map[string]string{"ann": "free", "bob": "pro", "probes": "ours", "mallory": "banned"}}
}

func newLimiter(rdb redis.UniversalClient, d *directory) (*hybrid.Limiter, error) {
	return hybrid.New(rdb, plans["free"], hybrid.WithName("tenants"),
		hybrid.WithLimitByKey(d.limit), hybrid.WithExpectedInstances(1),
		hybrid.WithLogger(slog.New(slog.DiscardHandler))) // a limit that is raised says for a lease that another one applies
}

func run(ctx context.Context, out io.Writer, url string) error {
	rdb, stop, err := connect(ctx, url)
	if err != nil {
		return err
	}
	defer stop()
	d := newDirectory()
	lim, err := newLimiter(rdb, d)
	if err != nil {
		return err
	}
	defer func() { _ = lim.Close() }()
	for _, tenant := range tenants { // forget what the last run used up
		if err := lim.Reset(ctx, tenant); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "tenant    limit      admitted of 100 at once")
	for _, tenant := range tenants {
		if err := try(ctx, out, lim, d, tenant); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "-- ann buys the plan pro")
	if err := upgrade(ctx, lim, d, "ann"); err != nil {
		return err
	}
	return try(ctx, out, lim, d, "ann")
}

// upgrade waits until a tenant has a better plan on all instances. A lower limit
// applies at once; a higher one when no instance has asked for the lower one during a
// lease, which is a second. Then the bucket fills.
func upgrade(ctx context.Context, lim *hybrid.Limiter, d *directory, tenant string) error {
	d.set(tenant, "pro")
	for range 15 {
		if _, err := lim.Allow(ctx, tenant); err != nil {
			return err
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	select {
	case <-time.After(2 * time.Second):
	case <-ctx.Done():
	}
	return ctx.Err()
}

// try makes a hundred requests of a tenant.
func try(ctx context.Context, out io.Writer, lim *hybrid.Limiter, d *directory, tenant string) error {
	admitted, err := burst(ctx, lim, tenant)
	fmt.Fprintf(out, "%-9s %-10v %3d\n", tenant, d.limit(tenant), admitted)
	return err
}

func burst(ctx context.Context, lim *hybrid.Limiter, tenant string) (admitted int, err error) {
	for range 100 {
		res, err := lim.Allow(ctx, tenant)
		if err != nil {
			return admitted, err
		}
		if res.Allowed {
			admitted++
		}
	}
	return admitted, nil
}
