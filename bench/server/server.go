// Package server runs a redis-server process, and a proxy that makes it far away.
// It needs a Unix.
package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// startLimit is for the process to start, on a machine that is busy.
const startLimit = 30 * time.Second

// A Server is a redis-server process without persistence on a loopback port, which
// it keeps when it is killed and started again.
type Server struct {
	// Addr is where it listens.
	Addr string

	port  int
	dir   string
	admin *redis.Client

	mu   sync.Mutex
	cmd  *exec.Cmd
	log  *bytes.Buffer
	done chan struct{}
}

// Start starts a server.
func Start() (*Server, error) {
	dir, err := os.MkdirTemp("", "limiter-bench-")
	if err != nil {
		return nil, err
	}
	var last error
	for range 20 { // the port may go to someone else before the server has it
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		s := &Server{Addr: fmt.Sprint("127.0.0.1:", port), port: port, dir: dir}
		s.admin = redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1, PoolSize: 1})
		if last = s.launch(); last == nil {
			return s, nil
		}
		_ = s.admin.Close()
	}
	_ = os.RemoveAll(dir)
	return nil, last
}

// launch starts the process and waits until it answers.
func (s *Server) launch() error {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return fmt.Errorf("a redis-server is needed (make redis installs one): %w", err)
	}
	cmd := exec.Command(path, "--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir,
		"--save", "", "--appendonly", "no", "--tcp-backlog", "511")
	cmd.SysProcAttr = dieWithParent()
	log, done, begun := &bytes.Buffer{}, make(chan struct{}), make(chan error, 1)
	cmd.Stdout, cmd.Stderr = log, log
	go func() {
		// The kernel takes the end of the thread that started the process for the end
		// of its parent.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(done)
		err := cmd.Start()
		begun <- err
		if err == nil {
			_ = cmd.Wait() // it is killed in the end
		}
	}()
	if err := <-begun; err != nil {
		return err
	}
	s.mu.Lock()
	s.cmd, s.log, s.done = cmd, log, done
	s.mu.Unlock()
	for limit := time.Now().Add(startLimit); ; {
		if pid, err := s.pid(); err == nil && pid == cmd.Process.Pid {
			return nil
		}
		select {
		case <-done:
			return fmt.Errorf("redis-server ended: %s", log)
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(limit) {
			s.Kill()
			return errors.New("redis-server does not answer")
		}
	}
}

func (s *Server) pid() (int, error) {
	info, err := s.Info("server")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(info["process_id"])
}

// Do runs a command past the clients that are measured.
func (s *Server) Do(args ...any) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return s.admin.Do(ctx, args...).Err()
}

// Kill ends the process at once, stopped or not.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.cmd.Process.Kill() // fails if it has ended already
	<-s.done
}

// Restart starts it again on the same port, without data.
func (s *Server) Restart() error {
	s.Kill()
	return s.launch()
}

// Freeze stops the process, and Thaw lets it go on: connections stay, and are not
// answered meanwhile.
func (s *Server) Freeze() error { return s.signal(syscall.SIGSTOP) }

// Thaw ends a Freeze.
func (s *Server) Thaw() error { return s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cmd.Process.Signal(sig)
}

// Close ends the process and removes its files.
func (s *Server) Close() error {
	s.Kill()
	return errors.Join(s.admin.Close(), os.RemoveAll(s.dir))
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}
