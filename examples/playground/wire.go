package main

import (
	"context"
	"errors"
	"net"
	"sync"
)

// dialer connects to a server.
type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// A wire is the connection of one instance to Redis: all that its client dials. It
// can be cut and mended.
type wire struct {
	dial dialer

	mu    sync.Mutex // guards what follows
	own   bool       // this instance is cut off
	all   wireState  // what happens to all instances
	conns map[*wireConn]struct{}
}

type wireState uint8

const (
	whole   wireState = iota
	silent            // nothing arrives, and nobody is told
	refused           // connections end, and new ones are refused
)

var errWireCut = errors.New("the wire is cut")

func newWire() *wire { return &wire{conns: map[*wireConn]struct{}{}} }

// state is what the wire does; the lock is held.
func (w *wire) state() wireState {
	if w.all == whole && w.own {
		return silent
	}
	return w.all
}

// setOwn cuts this instance off, silently, or mends that.
func (w *wire) setOwn(cut bool) { w.set(func() { w.own = cut }) }

// setAll sets what happens to the wires of all instances.
func (w *wire) setAll(s wireState) { w.set(func() { w.all = s }) }

// set changes the state. A connection that was silent stays so: what was lost on it
// cannot be made up for.
func (w *wire) set(change func()) {
	w.mu.Lock()
	change()
	state := w.state()
	var closed []*wireConn
	for c := range w.conns {
		c.lost = c.lost || state != whole
		if state == refused {
			closed = append(closed, c)
		}
	}
	w.mu.Unlock()
	for _, c := range closed {
		_ = c.Close()
	}
}

func (w *wire) isCut() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.own
}

// Dial is for the options of a client.
func (w *wire) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	w.mu.Lock()
	state := w.state()
	w.mu.Unlock()
	fail := func(err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	switch state {
	case refused:
		return fail(errWireCut)
	case silent:
		<-ctx.Done()
		return fail(ctx.Err())
	}
	conn, err := w.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state() != whole {
		_ = conn.Close()
		return fail(errWireCut)
	}
	c := &wireConn{Conn: conn, wire: w}
	w.conns[c] = struct{}{}
	return c, nil
}

// A wireConn is a connection over a wire.
type wireConn struct {
	net.Conn
	wire *wire
	lost bool // guarded by the wire's lock
}

func (c *wireConn) isLost() bool {
	c.wire.mu.Lock()
	defer c.wire.mu.Unlock()
	return c.lost
}

// Write of a lost connection succeeds, as it does while packets get lost.
func (c *wireConn) Write(b []byte) (int, error) {
	if c.isLost() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// Read of a lost connection ends with its deadline or its close.
func (c *wireConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err != nil || !c.isLost() {
			return n, err
		}
	}
}

func (c *wireConn) Close() error {
	c.wire.mu.Lock()
	delete(c.wire.conns, c)
	c.wire.mu.Unlock()
	return c.Conn.Close()
}

// tcp dials without a wire.
func tcp(ctx context.Context, network, addr string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, addr)
}
