package redistest

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// startLimit is for one process to start, on a machine that is busy.
const startLimit = 30 * time.Second

// A process is a redis-server that this package started.
type process struct {
	port int
	bus  int // of a node of a cluster
	cmd  *exec.Cmd
	log  *logBuffer
	done chan struct{} // closed when the process has ended
}

// startRedis starts a redis-server in the directory on a free port, and waits
// until it answers. The lines of redis.conf are those of config, which is
// called for each attempt, after the port and the like. Arguments are for the
// command line. It logs what the process printed if the test fails.
func startRedis(t testing.TB, dir string, config func() []string, args ...string) *process {
	t.Helper()
	path := requireRedis(t)
	for range 20 {
		port, err := freePort()
		if err != nil {
			t.Fatalf("redistest: no free port: %v", err)
		}
		file := filepath.Join(dir, "redis.conf")
		lines := append([]string{
			fmt.Sprintf("port %d", port),
			"bind 127.0.0.1",
			"dir " + quote(dir),
			"loglevel notice",
		}, config()...)
		text := strings.Join(lines, "\n") + "\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatalf("redistest: %v", err)
		}
		p, err := startProcess(port, path, append([]string{file}, args...)...)
		if err != nil {
			t.Fatalf("redistest: %v", err)
		}
		t.Cleanup(func() {
			p.kill()
			if t.Failed() {
				t.Logf("redistest: output of redis-server, port %d:\n%s", port, p.log)
			}
		})
		switch err := p.waitReady(); {
		case err == nil:
			return p
		case strings.Contains(p.log.String(), "Address already in use"):
			continue // the port went to someone else, take another one
		default:
			t.Fatalf("redistest: redis-server does not start: %v", err)
		}
	}
	t.Fatal("redistest: redis-server does not start: each port was taken by another process")
	return nil
}

// requireRedis returns the path of redis-server. It fails the test, and does
// not skip it, if there is none.
func requireRedis(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err == nil {
		return path
	}
	install := "apt-get install -y redis-server (Debian, Ubuntu) or dnf install -y redis (Fedora)"
	if runtime.GOOS == "darwin" {
		install = "brew install redis"
	}
	t.Fatalf("redistest: this test needs redis-server: %v\ninstall it with: %s", err, install)
	return ""
}

func startProcess(port int, path string, args ...string) (*process, error) {
	p := &process{
		port: port,
		cmd:  exec.Command(path, args...),
		log:  &logBuffer{},
		done: make(chan struct{}),
	}
	p.cmd.Stdout = p.log
	p.cmd.Stderr = p.log
	p.cmd.SysProcAttr = dieWithParent()
	started := make(chan error, 1)
	go func() {
		// The kernel takes the end of the thread that started the process
		// for the end of its parent, so keep that thread.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.done)
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // the outcome is in the log
		}
	}()
	return p, <-started
}

// waitReady waits until the process itself answers, and not another one that
// was faster to take the port.
func (p *process) waitReady() error {
	self := fmt.Sprintf("process_id:%d\r\n", p.cmd.Process.Pid)
	return poll(startLimit, func() error {
		select {
		case <-p.done:
			return permanent{errors.New("it ended")}
		default:
		}
		info, err := p.do("INFO", "server")
		if err == nil && !strings.Contains(info, self) {
			err = fmt.Errorf("another process has port %d", p.port)
		}
		if err == nil {
			_, err = p.do("PING") // unlike INFO, not before the data is loaded
		}
		return err
	})
}

func (p *process) dial() (net.Conn, error) {
	return net.DialTimeout("tcp", loopback(p.port), time.Second)
}

// do sends a command to the process itself, without a proxy.
func (p *process) do(args ...string) (string, error) {
	return do(p.dial, 5*time.Second, args...)
}

// kill ends the process, stopped or not, and waits for its end.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails if it has already ended
	<-p.done
}

// logBuffer keeps the output of a process. It may be read at any time.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// quote writes a value as a string of redis.conf.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
