package remote

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strings"
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

// isNoServer reports whether go-redis found none of the servers that it knows. It
// has no values for these errors.
func isNoServer(err error) bool {
	text := err.Error()
	return strings.HasPrefix(text, "redis: all sentinels specified in configuration are unreachable") ||
		strings.HasPrefix(text, "redis: all ring shards are down") ||
		strings.HasPrefix(text, "redis: cluster has no nodes")
}

// isTLS reports whether only one side speaks TLS, or the certificate is not
// trusted.
func isTLS(err error) bool {
	var (
		header tls.RecordHeaderError
		cert   *tls.CertificateVerificationError
	)
	return errors.As(err, &header) || errors.As(err, &cert)
}
