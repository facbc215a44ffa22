package redistest

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"
)

// TestMemoryPipe compares what a client sees of a closed connection in memory
// to what it sees over TCP.
func TestMemoryPipe(t *testing.T) {
	client, server := memoryPipe()
	if _, err := client.(syscall.Conn).SyscallConn(); err != nil {
		t.Errorf("open: SyscallConn = %v", err)
	}
	server.Close()
	for _, set := range []func(time.Time) error{
		client.SetDeadline, client.SetReadDeadline, client.SetWriteDeadline,
	} {
		if err := set(time.Now().Add(time.Minute)); err != nil {
			t.Errorf("closed by peer: deadline: %v", err)
		}
	}
	b := []byte("x")
	if _, err := client.Read(b); !errors.Is(err, io.EOF) {
		t.Errorf("closed by peer: Read = %v, want EOF", err)
	}
	if _, err := client.Write(b); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("closed by peer: Write = %v, want EPIPE", err)
	}
	if _, err := client.(syscall.Conn).SyscallConn(); !errors.Is(err, io.EOF) {
		t.Errorf("closed by peer: SyscallConn = %v, want EOF", err)
	}

	client, _ = memoryPipe()
	client.Close()
	if _, err := client.Read(b); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed: Read = %v, want net.ErrClosed", err)
	}
	if _, err := client.Write(b); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed: Write = %v, want net.ErrClosed", err)
	}
	if err := client.SetDeadline(time.Time{}); err == nil {
		t.Error("closed: SetDeadline succeeds")
	}
}
