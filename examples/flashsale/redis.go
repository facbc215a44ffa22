package main

import (
	"context"
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
)

// connect returns a client of the server of the URL, or, without one, of a miniredis
// that lives until stop is called.
func connect(ctx context.Context, url string) (rdb redis.UniversalClient, stop func(), err error) {
	server, end := &redis.Options{}, func() {}
	if url == "" {
		mini := miniredis.NewMiniRedis()
		if err := mini.Start(); err != nil {
			return nil, nil, err
		}
		server.Addr, end = mini.Addr(), mini.Close
	} else if server, err = redis.ParseURL(url); err != nil {
		return nil, nil, fmt.Errorf("-redis: %w; want redis://[user:password@]host[:port][/db]", err)
	}
	options := hybrid.RedisOptions(server.Addr)
	options.Username, options.Password, options.DB = server.Username, server.Password, server.DB
	options.TLSConfig = server.TLSConfig
	rdb = redis.NewUniversalClient(options)
	stop = func() { _ = rdb.Close(); end() }
	if err := rdb.Ping(ctx).Err(); err != nil {
		stop()
		return nil, nil, fmt.Errorf("cannot use Redis at %s: %w; start one with redis-server, give its password as in redis://:password@host:port, or leave out -redis", server.Addr, err)
	}
	return rdb, stop, nil
}
