//go:build unix && !linux

package redistest

import (
	"os"
	"syscall"
)

// dieWithParent has nothing to offer here: a process outlives a test that is
// killed.
func dieWithParent() *syscall.SysProcAttr { return nil }

func stopProcess(p *os.Process) error     { return p.Signal(syscall.SIGSTOP) }
func continueProcess(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
