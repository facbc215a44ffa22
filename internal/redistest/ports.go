package redistest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"
)

// Ports for servers come from this range. It is below those that systems give
// to outgoing connections, so that none of these can take the port of a server
// that is down for a moment.
const (
	firstPort = 20000
	lastPort  = 31999
)

// listenAnywhere listens on a free loopback port.
func listenAnywhere() (net.Listener, error) {
	var lastErr error
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		ln, err := net.Listen("tcp", loopback(port))
		if err == nil {
			return ln, nil
		}
		lastErr = err
	}
	return nil, lastErr
}

// freePort returns a loopback port that is free now. Another process may take
// it before its user does, who then tries again with another one.
func freePort() (int, error) {
	ln, err := listenAnywhere()
	if err != nil {
		return 0, err
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port, nil
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// permanent is an error that no further attempt can mend.
type permanent struct{ error }

// poll calls f until it succeeds or fails for good, for at most the given
// time, and returns its last error.
func poll(limit time.Duration, f func() error) error {
	deadline := time.Now().Add(limit)
	for {
		err := f()
		if err == nil || errors.As(err, new(permanent)) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}
