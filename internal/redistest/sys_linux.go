package redistest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// dieWithParent has the kernel kill the process when the test dies, however
// it dies.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// stopProcess stops the process and waits until it stands still.
func stopProcess(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return poll(time.Second, func() error {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid))
		if err != nil {
			return err
		}
		// pid (name) state ...
		i := bytes.LastIndexByte(stat, ')')
		if i < 0 || !bytes.HasPrefix(stat[i+1:], []byte(" T")) {
			return errors.New("the process is still running")
		}
		return nil
	})
}

func continueProcess(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
