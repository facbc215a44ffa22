package main

import (
	"bufio"
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// echoed is a wire to servers that send each line back.
func echoed(t *testing.T) *wire {
	w := newWire()
	w.dial = func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		t.Cleanup(func() { _ = server.Close() })
		go func() {
			lines := bufio.NewReader(server)
			for {
				line, err := lines.ReadString('\n')
				if err != nil {
					return
				}
				if _, err := server.Write([]byte(line)); err != nil {
					return
				}
			}
		}()
		return client, nil
	}
	return w
}

func dialed(t *testing.T, w *wire) net.Conn {
	t.Helper()
	conn, err := w.Dial(t.Context(), "tcp", "anywhere")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// asked sends a line and returns the error of the answer, after a second at most.
func asked(conn net.Conn) error {
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := conn.Write([]byte("hello\n")); err != nil {
		return err
	}
	_, err := conn.Read(make([]byte, 10))
	return err
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

func TestWireThatIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := echoed(t)
		conn := dialed(t, w)
		if err := asked(conn); err != nil {
			t.Fatal(err)
		}
		w.setOwn(true)
		if err := asked(conn); !isTimeout(err) {
			t.Errorf("an answer over a silent wire: %v, want a time-out", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if _, err := w.Dial(ctx, "tcp", "anywhere"); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("a dial ended with %v after %v, want the context's end", err, time.Since(start))
		}
		w.setOwn(false)
		if err := asked(conn); !isTimeout(err) {
			t.Errorf("the connection that lost something: %v, want a time-out", err)
		}
		if err := asked(dialed(t, w)); err != nil {
			t.Errorf("a new connection: %v", err)
		}
	})
}

func TestWireThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := echoed(t)
		conn := dialed(t, w)
		w.setAll(refused)
		if err := asked(conn); err == nil || isTimeout(err) {
			t.Errorf("the old connection: %v, want its end", err)
		}
		if _, err := w.Dial(t.Context(), "tcp", "anywhere"); !errors.Is(err, errWireCut) {
			t.Errorf("a dial: %v, want a refusal", err)
		}
		w.setOwn(true)
		w.setAll(whole)
		if !w.isCut() {
			t.Error("what happens to all mended this one's own cut")
		}
		w.setOwn(false)
		if err := asked(dialed(t, w)); err != nil {
			t.Errorf("a new connection: %v", err)
		}
		if n := len(w.conns); n != 1 {
			t.Errorf("%d connections are remembered, want 1", n)
		}
	})
}
