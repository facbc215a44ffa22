package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
)

// connect returns client options for the server of the URL, or, without one,
// for a miniredis that lives until stop is called.
func connect(url string, plug *plug) (options *redis.UniversalOptions, where string, stop func(), err error) {
	stop = func() {}
	server := &redis.Options{}
	if url == "" {
		mini := miniredis.NewMiniRedis()
		if err := mini.Start(); err != nil {
			return nil, "", nil, err
		}
		stop, where, server.Addr = mini.Close, "inside this program", mini.Addr()
	} else {
		if server, err = redis.ParseURL(url); err != nil {
			return nil, "", nil, fmt.Errorf("-redis: %w; want redis://[user:password@]host[:port][/db], or rediss:// for TLS", err)
		}
		where = server.Addr
	}
	options = hybrid.RedisOptions(server.Addr)
	options.Username, options.Password, options.DB = server.Username, server.Password, server.DB
	plug.dialer = redis.NewDialer(&redis.Options{
		DialTimeout: options.DialTimeout, TLSConfig: server.TLSConfig,
	})
	options.Dialer = plug.dial
	return options, where, stop, nil
}

// A plug is a dialer whose connections can be cut.
type plug struct {
	dialer func(ctx context.Context, network, addr string) (net.Conn, error)

	mu     sync.Mutex // guards what follows
	pulled bool
	conns  []net.Conn
}

var errPulled = errors.New("the plug is pulled")

func (p *plug) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := p.dialer(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pulled {
		conn.Close()
		return nil, &net.OpError{Op: "dial", Net: network, Err: errPulled}
	}
	p.conns = append(p.conns, conn)
	return conn, nil
}

func (p *plug) pull() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pulled = true
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

func (p *plug) push() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pulled = false
}
