package remote

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// isConnection reports whether err is what a broken or refused connection
// looks like. A server at its connection limit shows as a broken pipe.
func isConnection(err error) bool {
	var (
		op   *net.OpError
		call *os.SyscallError
		dns  *net.DNSError
		no   syscall.Errno
	)
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, io.ErrClosedPipe) || errors.Is(err, net.ErrClosed) ||
		errors.As(err, &op) || errors.As(err, &call) || errors.As(err, &dns) || errors.As(err, &no)
}
