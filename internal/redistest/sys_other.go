//go:build !unix

package redistest

import (
	"errors"
	"os"
	"syscall"
)

func dieWithParent() *syscall.SysProcAttr { return nil }

func stopProcess(*os.Process) error     { return errors.ErrUnsupported }
func continueProcess(*os.Process) error { return errors.ErrUnsupported }
