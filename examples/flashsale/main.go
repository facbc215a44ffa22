// Flash sale: ten pieces in stock, 300 customers who ask twice each, three instances.
// The limiter keeps the crowd away from the database; the optimistic lock of the
// database keeps the stock right.
//
//	cd examples/flashsale && go run .
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
)

func main() {
	url := flag.String("redis", "", "URL of a Redis server (default: one inside this program)")
	flag.Parse()
	if _, err := run(context.Background(), os.Stdout, *url); err != nil {
		fmt.Fprintln(os.Stderr, "flashsale:", err)
		os.Exit(1)
	}
}

const (
	instances = 3
	customers = 300
	waves     = 2 // each customer asks, and asks again a second later
	stock     = 10
)

// limit is what the database is to bear: for all instances together.
var limit = hybrid.PerSecond(50)

// An outcome is what became of the sale.
type outcome struct {
	requests, refused, reached int
	orders, left               int
	length                     time.Duration
}

// run sells out.
func run(ctx context.Context, out io.Writer, url string) (o outcome, err error) {
	rdb, stop, err := connect(ctx, url)
	if err != nil {
		return o, err
	}
	defer stop()
	dir, err := os.MkdirTemp("", "flashsale-")
	if err != nil {
		return o, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	shop, err := open(ctx, filepath.Join(dir, "shop.db"), stock)
	if err != nil {
		return o, err
	}
	defer shop.close()
	fleet, err := start(rdb)
	for _, lim := range fleet {
		defer func() { _ = lim.Close() }()
	}
	if err != nil {
		return o, err
	}
	if err := fleet[0].Reset(ctx, item); err != nil { // forget what the last run used up
		return o, err
	}
	if o, err = sell(ctx, fleet, shop); err != nil {
		return o, err
	}
	fmt.Fprintf(out, "%d requests of %d customers for %d pieces, on %d instances\n", o.requests, customers, stock, instances)
	fmt.Fprintf(out, "%d refused by the limiter (%v)\n", o.refused, limit)
	fmt.Fprintf(out, "%d reached the database\n", o.reached)
	fmt.Fprintf(out, "%d orders, %d pieces left\n", o.orders, o.left)
	return o, nil
}

// item is what is sold: its limit is that of all customers together.
const item = "item:1"

func start(rdb redis.UniversalClient) (fleet []*hybrid.Limiter, err error) {
	for range instances {
		lim, err := hybrid.New(rdb, limit, hybrid.WithName("flashsale"), hybrid.WithExpectedInstances(instances))
		if err != nil {
			return fleet, err
		}
		fleet = append(fleet, lim)
	}
	return fleet, nil
}

// sell lets all customers ask, in waves.
func sell(ctx context.Context, fleet []*hybrid.Limiter, shop *shop) (outcome, error) {
	var refused, reached atomic.Int64
	var failed atomic.Value
	began := time.Now()
	for wave := range waves {
		if wave > 0 {
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return outcome{}, ctx.Err()
			}
		}
		var all sync.WaitGroup
		for customer := range customers {
			all.Go(func() {
				res, err := fleet[customer%instances].Allow(ctx, item)
				if err == nil && !res.Allowed {
					refused.Add(1)
					return
				}
				if err == nil {
					reached.Add(1)
					_, err = shop.buy(ctx, customer)
				}
				if err != nil {
					failed.Store(err)
				}
			})
		}
		all.Wait()
	}
	length := time.Since(began)
	if err, ok := failed.Load().(error); ok {
		return outcome{}, err
	}
	orders, left, err := shop.count(ctx)
	return outcome{
		requests: customers * waves, refused: int(refused.Load()), reached: int(reached.Load()),
		orders: orders, left: left, length: length,
	}, err
}
