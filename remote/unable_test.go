package remote_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/internal/redistest"
	"github.com/resilient-go/limiter/remote"
)

func TestClientsThatCannotAsk(t *testing.T) {
	s := redistest.Server(t)
	closed := s.Client()
	_ = closed.Close()
	busy := func(o *redis.Options) { o.PoolSize, o.PoolTimeout, o.PipelinePoolSize = 1, 10*time.Millisecond, -1 }
	taken := s.Client(busy)
	exhausted := s.Client(func(o *redis.Options) { o.MaxActiveConns, o.PipelinePoolSize = 1, -1 })
	for _, rdb := range []*redis.Client{taken, exhausted} {
		conn := rdb.Conn()
		if err := conn.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
	}
	hooked := func(before func([]redis.Cmder) error) *redis.Client {
		rdb := s.Client()
		rdb.AddHook(&hook{before: before})
		return rdb
	}
	nowhere := s.Client(func(o *redis.Options) {
		o.DialerRetries = 1
		o.Dialer = func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "redis", IsNotFound: true}}
		}
	})
	for _, c := range []struct {
		name  string
		rdb   redis.UniversalClient
		class remote.Class
	}{
		{"a closed client", closed, remote.Closed},
		{"no connection free", taken, remote.Saturated},
		{"no connection allowed", exhausted, remote.Saturated},
		{"no such host", nowhere, remote.Connection},
		{"a hook that panics", hooked(func([]redis.Cmder) error { panic("oops") }), remote.Panic},
		{"a hook that fails", hooked(func([]redis.Cmder) error { return errors.New("oops") }), remote.Other},
		{"a hook that answers", hooked(answer("OK").before), remote.Protocol},
		{"a hook that answers nothing", hooked(func([]redis.Cmder) error { return errAnswered }), remote.Protocol},
		{"a service that is not Redis", plain(t, "HTTP/1.1 400 Bad Request\r\n\r\n", nil), remote.Protocol},
		{"TLS towards a plain port", plain(t, "-ERR unknown command\r\n", func(o *redis.Options) { o.TLSConfig = trusting() }), remote.Protocol},
		{"a certificate that nobody knows", secure(t), remote.Protocol},
	} {
		t.Run(c.name, func(t *testing.T) {
			if o := call(newClient(t, c.rdb, patience), one("key")); o.class() != c.class {
				t.Errorf("%v, want class %v", o.err, c.class)
			}
			for _, f := range piped(t, c.rdb, patience, 3) {
				if o := f.wait(); o.class() != c.class {
					t.Errorf("in a pipeline: %v, want class %v", o.err, c.class)
				}
			}
		})
	}
}

// plain is a client of a service that gives everybody the same answer.
func plain(t *testing.T, text string, option func(*redis.Options)) *redis.Client {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 4096))
			_, _ = conn.Write([]byte(text))
			conn.Close()
		}
	}()
	o := &redis.Options{Addr: ln.Addr().String()}
	if option != nil {
		option(o)
	}
	rdb := redis.NewClient(o)
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

// secure is a client of a server whose certificate is its own.
func secure(t *testing.T) *redis.Client {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = silent
	s.StartTLS()
	t.Cleanup(s.Close)
	rdb := redis.NewClient(&redis.Options{Addr: s.Listener.Addr().String(), TLSConfig: trusting()})
	t.Cleanup(func() { rdb.Close() })
	return rdb
}
