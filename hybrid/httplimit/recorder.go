package httplimit

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// A recorder notes the status and the length of a response. It and its wrapped
// forms do what the writer below does; http.ResponseController sees through them.
type recorder struct {
	http.ResponseWriter
	status int // 0: none yet
	bytes  int64
}

// Unwrap is for http.ResponseController.
func (rec *recorder) Unwrap() http.ResponseWriter { return rec.ResponseWriter }

func (rec *recorder) WriteHeader(status int) {
	if final := status >= 200 || status == http.StatusSwitchingProtocols; final {
		rec.note(status)
	}
	rec.ResponseWriter.WriteHeader(status)
}

// note keeps the first status.
func (rec *recorder) note(status int) {
	if rec.status == 0 {
		rec.status = status
	}
}

func (rec *recorder) Write(p []byte) (int, error) {
	rec.note(http.StatusOK)
	n, err := rec.ResponseWriter.Write(p)
	rec.bytes += int64(n)
	return n, err
}

// ReadFrom keeps the fast path of io.Copy, if there is one below.
func (rec *recorder) ReadFrom(r io.Reader) (int64, error) {
	rec.note(http.StatusOK)
	n, err := io.Copy(rec.ResponseWriter, r)
	rec.bytes += n
	return n, err
}

// Push implements http.Pusher.
func (rec *recorder) Push(target string, opts *http.PushOptions) error {
	if p, ok := rec.ResponseWriter.(http.Pusher); ok {
		return p.Push(target, opts)
	}
	return http.ErrNotSupported
}

// A flusher adds http.Flusher.
type flusher struct{ rec *recorder }

func (f flusher) Flush() { _ = f.FlushError() }

// FlushError is what http.ResponseController calls.
func (f flusher) FlushError() error {
	f.rec.note(http.StatusOK)
	return http.NewResponseController(f.rec.ResponseWriter).Flush()
}

// A hijacker adds http.Hijacker.
type hijacker struct{ rec *recorder }

func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.rec.ResponseWriter).Hijack()
	if err == nil {
		h.rec.note(http.StatusSwitchingProtocols)
	}
	return conn, rw, err
}

// wrapped returns the recorder with exactly the abilities that handlers find by
// asserting types.
func (rec *recorder) wrapped() http.ResponseWriter {
	_, flushes := rec.ResponseWriter.(http.Flusher)
	_, hijacks := rec.ResponseWriter.(http.Hijacker)
	switch {
	case flushes && hijacks:
		return struct {
			*recorder
			flusher
			hijacker
		}{rec, flusher{rec}, hijacker{rec}}
	case flushes:
		return struct {
			*recorder
			flusher
		}{rec, flusher{rec}}
	case hijacks:
		return struct {
			*recorder
			hijacker
		}{rec, hijacker{rec}}
	default:
		return rec
	}
}
