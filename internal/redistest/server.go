package redistest

import (
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// Redis is a redis-server process with switches.
type Redis struct {
	*Proxy
	t      testing.TB
	dir    string
	conf   []string        // lines of redis.conf
	config func() []string // more lines, made anew for each start, or nil
	ready  func() error    // more to do after each start, or nil

	mu      sync.Mutex
	proc    *process // the last one
	killed  bool
	frozen  bool
	saveErr error // why there is no data for RestartWithData
}

// Server starts a redis-server on a free loopback port. It has no persistence
// except for what [Redis.RestartWithData] needs. Each of conf is a line of
// redis.conf, for instance "maxmemory 2mb" or "appendonly yes"; files go to a
// temporary directory of the test. A password is not supported.
func Server(t testing.TB, conf ...string) *Redis {
	t.Helper()
	r := newRedis(t, conf)
	r.launch()
	return r
}

// newRedis makes a server that is not started but has its proxy.
func newRedis(t testing.TB, conf []string) *Redis {
	t.Helper()
	r := &Redis{t: t, dir: t.TempDir(), conf: conf}
	// The process changes only while the proxy is stopped.
	r.Proxy = newProxy(t, false, func() (net.Conn, error) { return r.proc.dial() })
	return r
}

// launch starts the process and lets clients connect.
func (r *Redis) launch() {
	r.t.Helper()
	r.proc = startRedis(r.t, r.dir, func() []string {
		lines := []string{`save ""`, "appendonly no"}
		if r.config != nil {
			lines = append(lines, r.config()...)
		}
		return append(lines, r.conf...)
	})
	r.killed, r.frozen = false, false
	if r.ready != nil {
		if err := r.ready(); err != nil {
			r.t.Fatalf("redistest: redis-server is not ready: %v", err)
		}
	}
	r.Proxy.start()
}

// Kill ends the server with SIGKILL: connections break, new ones are refused.
// The data is saved before, so that both kinds of restart can follow.
func (r *Redis) Kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kill()
}

func (r *Redis) kill() {
	if r.killed {
		return
	}
	// With the clients cut off first, the data is all that they were told.
	r.stop()
	if !r.frozen {
		r.saveErr = r.save()
	}
	r.proc.kill()
	r.killed = true
}

// save writes the data to the disk.
func (r *Redis) save() error {
	return poll(5*time.Second, func() error {
		_, err := r.proc.do("SAVE")
		if err != nil && !strings.Contains(err.Error(), "in progress") {
			err = permanent{err}
		}
		return err
	})
}

// RestartEmpty starts the server anew, without data and scripts. It kills a
// server that is still running.
func (r *Redis) RestartEmpty() {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kill()
	if err := os.RemoveAll(r.dir); err != nil {
		r.t.Fatalf("redistest: %v", err)
	}
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		r.t.Fatalf("redistest: %v", err)
	}
	r.launch()
}

// RestartWithData starts the server anew with the data it had when it was
// killed, without scripts. It kills a server that is still running. The data
// of a frozen server counts as well. The test fails if the data could not be
// saved, which happens if the server was busy with a script.
func (r *Redis) RestartWithData() {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kill()
	if r.saveErr != nil {
		r.t.Fatalf("redistest: the data was not saved before the kill: %v", r.saveErr)
	}
	r.launch()
}

// Freeze stops the process with SIGSTOP. Connections stay and new ones are
// accepted, but nothing is answered. The data is saved before, in case that a
// kill follows.
func (r *Redis) Freeze() {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.killed || r.frozen {
		return
	}
	r.saveErr = r.save()
	if err := stopProcess(r.proc.cmd.Process); err != nil {
		r.t.Errorf("redistest: redis-server cannot be frozen: %v", err)
	}
	r.frozen = true
}

// Thaw ends a Freeze with SIGCONT: the server runs what it was sent in the
// meantime.
func (r *Redis) Thaw() {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.killed || !r.frozen {
		return
	}
	if err := continueProcess(r.proc.cmd.Process); err != nil {
		r.t.Errorf("redistest: redis-server cannot be thawed: %v", err)
	}
	r.frozen = false
}

// ScriptFlush makes the server forget all scripts.
func (r *Redis) ScriptFlush() {
	r.t.Helper()
	if _, err := r.Do("SCRIPT", "FLUSH"); err != nil {
		r.t.Errorf("redistest: SCRIPT FLUSH: %v", err)
	}
}

// DirectAddr returns the address of the server itself, for benchmarks that the
// proxy would slow down. It changes with each restart.
func (r *Redis) DirectAddr() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return loopback(r.proc.port)
}

// Do runs a command past the proxy, without faults and counters, and returns
// the reply as it is on the wire. It is for commands to the server itself,
// such as INFO or CONFIG SET.
func (r *Redis) Do(args ...string) (string, error) {
	r.mu.Lock()
	proc, killed := r.proc, r.killed
	r.mu.Unlock()
	if killed {
		return "", fmt.Errorf("redistest: the server is killed")
	}
	return proc.do(args...)
}
