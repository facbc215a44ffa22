// Cluster: one limit per user on a Redis Cluster. Each bucket is one key in one slot,
// so that the buckets spread over the nodes and nothing needs a hash tag of yours.
//
//	go run ./examples/cluster
//	go run ./examples/cluster -redis 10.0.0.1:6379,10.0.0.2:6379,10.0.0.3:6379
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

func main() {
	addrs := flag.String("redis", "", "addresses of nodes of your cluster, with commas between them (default: a cluster of one node that is started here)")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *addrs); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

const (
	instances = 3
	users     = 6
	requests  = 20 // of each user to each instance
)

// patience is for a cluster that is far away, or a machine that is busy: with the
// default of 50 ms that is an outage, and the numbers tell of it.
const patience = 400 * time.Millisecond

// limit refills one token in two minutes, so that the numbers are exact.
var limit = hybrid.PerHour(30)

func run(ctx context.Context, out io.Writer, addrs string) error {
	options, stop, err := connect(addrs)
	if err != nil {
		return err
	}
	defer stop()
	var fleet []*hybrid.Limiter
	for range instances {
		rdb := redis.NewUniversalClient(options)
		defer func() { _ = rdb.Close() }()
		if err := rdb.Ping(ctx).Err(); err != nil {
			return fmt.Errorf("cannot use the cluster at %s: %w; -redis takes addresses such as 10.0.0.1:6379,10.0.0.2:6379, of nodes that ask for no password", strings.Join(options.Addrs, ","), err)
		}
		lim, err := hybrid.New(rdb, limit, hybrid.WithName("cluster"),
			hybrid.WithRemoteTimeout(patience), hybrid.WithExpectedInstances(instances))
		if err != nil {
			return err
		}
		defer func() { _ = lim.Close() }()
		fleet = append(fleet, lim)
	}
	fmt.Fprintf(out, "%d instances, %v per user, %d requests of each user to each instance\n", instances, limit, requests)
	for u := range users {
		user := fmt.Sprintf("user:%d", u)
		if err := fleet[0].Reset(ctx, user); err != nil { // forget what the last run used up
			return err
		}
		n, err := storm(ctx, fleet, user)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: %d of %d admitted\n", user, n, instances*requests)
	}
	return spread(ctx, out, options)
}

// connect returns options for the cluster of the flag, or for one that is started.
func connect(addrs string) (*redis.UniversalOptions, func(), error) {
	if addrs != "" {
		options := hybrid.RedisOptionsFor(patience, strings.Split(addrs, ",")...)
		options.IsClusterMode = true
		return options, func() {}, nil
	}
	owner := &redistest.Owner{}
	var cluster *redistest.RedisCluster
	if err := owner.Try(func() { cluster = redistest.Cluster(owner) }); err != nil {
		owner.Close()
		return nil, nil, err
	}
	options := hybrid.RedisOptionsFor(patience, cluster.Addr())
	options.IsClusterMode = true
	return options, owner.Close, nil
}

// storm makes all requests of a user at once.
func storm(ctx context.Context, fleet []*hybrid.Limiter, user string) (int, error) {
	var admitted atomic.Int64
	var failed atomic.Value
	var all sync.WaitGroup
	for _, lim := range fleet {
		for range requests {
			all.Go(func() {
				switch res, err := lim.Allow(ctx, user); {
				case err != nil:
					failed.Store(err)
				case res.Allowed:
					admitted.Add(1)
				}
			})
		}
	}
	all.Wait()
	err, _ := failed.Load().(error)
	return int(admitted.Load()), err
}

// spread tells in how many slots the buckets lie.
func spread(ctx context.Context, out io.Writer, options *redis.UniversalOptions) error {
	rdb := redis.NewClusterClient(options.Cluster())
	defer func() { _ = rdb.Close() }()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var mu sync.Mutex
	slots := map[int64]bool{}
	buckets := 0
	err := rdb.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		keys := node.Scan(ctx, 0, "*user:*", 1000).Iterator()
		for keys.Next(ctx) {
			slot, err := node.ClusterKeySlot(ctx, keys.Val()).Result()
			if err != nil {
				return err
			}
			mu.Lock()
			buckets++
			slots[slot] = true
			mu.Unlock()
		}
		return keys.Err()
	})
	fmt.Fprintf(out, "%d buckets lie in %d slots\n", buckets, len(slots))
	return err
}
