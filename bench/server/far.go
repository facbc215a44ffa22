package server

import (
	"errors"
	"net"
	"sync"
	"time"
)

// Far is a proxy that adds a round trip: what comes back from the server is held
// for that long, in order, however much is under way.
type Far struct {
	// Addr is where it listens.
	Addr string

	listener net.Listener
	work     sync.WaitGroup
	mu       sync.Mutex
	closed   bool
	conns    map[net.Conn]bool
}

// NewFar makes a proxy to an address.
func NewFar(to string, roundTrip time.Duration) (*Far, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f := &Far{Addr: l.Addr().String(), listener: l, conns: map[net.Conn]bool{}}
	f.work.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return // closed
			}
			f.work.Go(func() { f.serve(client, to, roundTrip) })
		}
	})
	return f, nil
}

// Close ends the proxy and its connections.
func (f *Far) Close() error {
	err := f.listener.Close()
	f.mu.Lock()
	f.closed = true
	for c := range f.conns {
		err = errors.Join(err, c.Close())
	}
	f.mu.Unlock()
	f.work.Wait()
	return err
}

// keep remembers a connection for Close, and forget drops it.
func (f *Far) keep(c net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.conns[c] = true
	}
	return !f.closed
}

func (f *Far) forget(c net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.conns[c] {
		delete(f.conns, c)
		_ = c.Close()
	}
}

// A chunk is what was read at once, and when it is due.
type chunk struct {
	bytes []byte
	due   time.Time
}

func (f *Far) serve(client net.Conn, to string, roundTrip time.Duration) {
	server, err := net.Dial("tcp", to)
	if err != nil {
		_ = client.Close()
		return
	}
	for _, c := range []net.Conn{client, server} {
		if !f.keep(c) {
			_ = c.Close()
		}
		defer f.forget(c)
	}
	there := make(chan struct{})
	go func() {
		defer close(there)
		pass(server, client, 0)
		f.forget(server) // ends the way back
	}()
	pass(client, server, roundTrip)
	f.forget(client)
	<-there
}

// pass copies until an end fails.
func pass(to, from net.Conn, delay time.Duration) {
	chunks := make(chan chunk, 4096)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for c := range chunks {
			time.Sleep(time.Until(c.due))
			if _, err := to.Write(c.bytes); err != nil {
				_ = from.Close() // the reader notices
				for range chunks {
				}
			}
		}
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			chunks <- chunk{append([]byte(nil), buf[:n]...), time.Now().Add(delay)}
		}
		if err != nil {
			break
		}
	}
	close(chunks)
	<-done
}
