package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestServerDiesWithTest kills a test, which then has no chance to clean up.
func TestServerDiesWithTest(t *testing.T) {
	const inner = "REDISTEST_INNER"
	if os.Getenv(inner) != "" {
		fmt.Printf("pid %d\n", Server(t).proc.cmd.Process.Pid)
		_, _ = io.Copy(io.Discard, os.Stdin) // until the outer test kills this one
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestServerDiesWithTest$")
	cmd.Env = append(os.Environ(), inner+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := 0
	for lines := bufio.NewScanner(out); pid == 0 && lines.Scan(); {
		if _, n, ok := strings.Cut(lines.Text(), "pid "); ok {
			pid, _ = strconv.Atoi(n)
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if pid == 0 {
		t.Fatal("the inner test did not start a server")
	}
	err = poll(10*time.Second, func() error {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("process %d lives on: %v", pid, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestServerProcesses looks for the processes of a test after its end, and of
// a server after its restarts.
func TestServerProcesses(t *testing.T) {
	var pids []int
	_, failed := run(t, func(t testing.TB) {
		r := Server(t)
		pids = append(pids, r.proc.cmd.Process.Pid)
		r.RestartEmpty()
		pids = append(pids, r.proc.cmd.Process.Pid)
		r.Freeze()
	})
	if failed || len(pids) != 2 || pids[0] == pids[1] {
		t.Fatalf("failed = %v, pids = %v", failed, pids)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d: %v, want none", pid, err)
		}
	}
}
