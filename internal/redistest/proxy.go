package redistest

import (
	"context"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Proxy stands between clients and a server, and makes faults. It is part of
// the server types of this package.
type Proxy struct {
	t       testing.TB
	backend func() (net.Conn, error) // connects to the server
	memory  bool                     // clients connect in memory, not over TCP
	addr    string

	network gate // shut by Partition
	server  gate // shut by Freeze, where the proxy has to imitate it

	mu       sync.Mutex
	down     bool // connections are refused
	listener net.Listener
	links    map[*link]struct{}
	faults   faults
	counts   Counts

	running sync.WaitGroup // goroutines of the listener and of the links
}

// newProxy makes a proxy that has its address but does not serve yet.
func newProxy(t testing.TB, memory bool, backend func() (net.Conn, error)) *Proxy {
	t.Helper()
	p := &Proxy{
		t:       t,
		backend: backend,
		memory:  memory,
		down:    true,
		links:   make(map[*link]struct{}),
	}
	if memory {
		// go-redis looks up a host name even if it has a dialer of its own,
		// which a bubble cannot wait for, hence an address. Nothing listens
		// there, should someone dial it without the proxy's dialer.
		p.addr = "127.0.0.1:1"
	} else {
		ln, err := listenAnywhere()
		if err != nil {
			t.Fatalf("redistest: no free port: %v", err)
		}
		p.listener = ln
		p.addr = ln.Addr().String()
	}
	t.Cleanup(func() {
		p.stop()
		p.network.open() // dials that hang are refused now
	})
	return p
}

// Addr returns the address that clients dial. It stays the same for the life
// of the proxy. That of a [Bubble] is of use to [Proxy.Dial] only.
func (p *Proxy) Addr() string { return p.addr }

// Client returns a client of the server. Its options are the defaults of
// go-redis, apart from the address and the dialer, and what opts change. The
// client is closed when the test ends.
func (p *Proxy) Client(opts ...func(*redis.Options)) *redis.Client {
	o := &redis.Options{Addr: p.addr, Dialer: p.Dial}
	if p.memory {
		o.PoolSize = 128 // see Bubble
	}
	for _, opt := range opts {
		opt(o)
	}
	c := redis.NewClient(o)
	p.t.Cleanup(func() { c.Close() })
	return c
}

// Dial connects to the server through the proxy, whatever the address. It is
// the Dialer for options of other clients than those that Client makes.
func (p *Proxy) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	p.mu.Lock()
	p.counts.Dials++
	p.mu.Unlock()
	if !p.network.pass(ctx.Done()) {
		return nil, dialError(ctx.Err())
	}
	if !p.memory {
		return (&net.Dialer{}).DialContext(ctx, "tcp", p.addr)
	}
	client, server := memoryPipe()
	if err := p.serve(server); err != nil {
		return nil, err
	}
	return client, nil
}

// start lets clients connect.
func (p *Proxy) start() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = false
	if p.memory {
		return
	}
	if p.listener == nil { // it was stopped
		err := poll(5*time.Second, func() (err error) {
			p.listener, err = net.Listen("tcp", p.addr)
			return err
		})
		if err != nil {
			p.t.Fatalf("redistest: the proxy cannot listen again: %v", err)
		}
	}
	ln := p.listener
	p.running.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			_ = p.serve(conn) // it has closed the connection
		}
	})
}

// stop breaks all connections and refuses new ones. When it returns, nothing
// that the clients sent is on its way to the server any more.
func (p *Proxy) stop() {
	p.mu.Lock()
	p.down = true
	if p.listener != nil {
		p.listener.Close()
		p.listener = nil
	}
	for l := range p.links {
		l.kill()
	}
	p.mu.Unlock()
	p.running.Wait()
	p.server.open() // a new server is not frozen
}

// serve makes a link of the connection of a client. It takes the connection
// over, also if it fails.
func (p *Proxy) serve(client net.Conn) error {
	p.mu.Lock()
	down := p.down
	p.mu.Unlock()
	if down {
		client.Close()
		return errRefused
	}
	server, err := p.backend()
	if err != nil {
		client.Close()
		return err
	}
	l := newLink(p, client, server)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		l.kill()
		return errRefused
	}
	p.counts.Conns++
	p.links[l] = struct{}{}
	p.running.Go(func() {
		l.serve()
		p.mu.Lock()
		delete(p.links, l)
		p.mu.Unlock()
	})
	return nil
}

// errRefused is what a dial of a port returns that nobody listens on.
var errRefused = dialError(os.NewSyscallError("connect", syscall.ECONNREFUSED))

// dialError wraps the error as the net package does.
func dialError(err error) error {
	return &net.OpError{Op: "dial", Net: "tcp", Err: err}
}
