package server

import "syscall"

// dieWithParent has the kernel kill the server when this program ends, however.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
