package redistest

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// memoryPipe returns the two ends of a connection that never leaves the
// process, and so may be used in a bubble. The client's end has the errors of
// a TCP connection.
func memoryPipe() (client, server net.Conn) {
	c, s := net.Pipe()
	end := &memoryConn{Conn: c}
	return end, &memoryPeer{Conn: s, client: end}
}

// memoryConn is the client's end. As a syscall.Conn it lets go-redis find out
// that an idle connection has been closed by the other side, like it does for
// TCP: otherwise each such connection would cost the test an error.
type memoryConn struct {
	net.Conn
	closedByPeer atomic.Bool
}

func (c *memoryConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if errors.Is(err, io.ErrClosedPipe) {
		err = &net.OpError{Op: "read", Net: "tcp", Err: net.ErrClosed}
	}
	return n, err // a close by the peer is an end of file
}

func (c *memoryConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if errors.Is(err, io.ErrClosedPipe) {
		err = net.ErrClosed
		if c.closedByPeer.Load() {
			err = os.NewSyscallError("write", syscall.EPIPE)
		}
		err = &net.OpError{Op: "write", Net: "tcp", Err: err}
	}
	return n, err
}

func (c *memoryConn) SetDeadline(t time.Time) error {
	return c.deadline(c.Conn.SetDeadline(t))
}

func (c *memoryConn) SetReadDeadline(t time.Time) error {
	return c.deadline(c.Conn.SetReadDeadline(t))
}

func (c *memoryConn) SetWriteDeadline(t time.Time) error {
	return c.deadline(c.Conn.SetWriteDeadline(t))
}

// deadline lets only the next read or write find out that the peer has closed.
func (c *memoryConn) deadline(err error) error {
	if errors.Is(err, io.ErrClosedPipe) && c.closedByPeer.Load() {
		return nil
	}
	return err
}

// SyscallConn returns a raw connection that has no file descriptor and never
// calls a function with one, or the end of file of a closed connection.
func (c *memoryConn) SyscallConn() (syscall.RawConn, error) {
	if c.closedByPeer.Load() {
		return nil, io.EOF
	}
	return noRawConn{}, nil
}

type noRawConn struct{}

func (noRawConn) Control(func(fd uintptr)) error    { return nil }
func (noRawConn) Read(func(fd uintptr) bool) error  { return nil }
func (noRawConn) Write(func(fd uintptr) bool) error { return nil }

// memoryPeer is the proxy's end.
type memoryPeer struct {
	net.Conn
	client *memoryConn
}

func (c *memoryPeer) Close() error {
	c.client.closedByPeer.Store(true)
	return c.Conn.Close()
}
