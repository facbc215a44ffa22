package httplimit_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid/httplimit"
)

// hijackable is a writer whose connection can be taken over.
type hijackable struct{ http.ResponseWriter }

func (hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	a, b := net.Pipe()
	_ = b.Close()
	return a, bufio.NewReadWriter(bufio.NewReader(a), bufio.NewWriter(a)), nil
}

// charged runs a handler behind WithCostAfter on a real server, sends it one
// request, and returns the answer and what was charged.
func charged(t *testing.T, handler http.HandlerFunc) (*http.Response, string, httplimit.Response) {
	t.Helper()
	seen := make(chan httplimit.Response, 1)
	server := httptest.NewServer(middleware(t, buckets(10), httplimit.WithCostAfter(func(r httplimit.Response) int {
		seen <- r
		return 1
	}))(handler))
	defer server.Close()
	resp, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body), <-seen
}

func TestStreamingBehindWrappedWriter(t *testing.T) {
	resp, body, seen := charged(t, func(w http.ResponseWriter, _ *http.Request) {
		c := http.NewResponseController(w)
		if err := c.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Errorf("SetWriteDeadline: %v", err)
		}
		_, _ = w.Write([]byte("a"))
		if err := c.Flush(); err != nil {
			t.Errorf("Flush: %v", err)
		}
		w.(http.Flusher).Flush()
		_, _ = w.Write([]byte("b"))
	})
	want(t, "status", resp.StatusCode, http.StatusOK)
	want(t, "body", body, "ab")
	want(t, "Content-Length, as it was flushed", resp.ContentLength, int64(-1))
	want(t, "charged status", seen.Status, http.StatusOK)
	want(t, "charged bytes", seen.Bytes, int64(2))
}

func TestCopyingBehindWrappedWriter(t *testing.T) {
	_, body, seen := charged(t, func(w http.ResponseWriter, _ *http.Request) {
		if _, found := w.(io.ReaderFrom); !found {
			t.Error("the writer has lost ReadFrom")
		}
		w.WriteHeader(http.StatusAccepted)
		n, err := io.Copy(w, onlyReader{strings.NewReader("12345")})
		want(t, "copied", n, int64(5))
		want(t, "error", err, nil)
	})
	want(t, "body", body, "12345")
	want(t, "charged status", seen.Status, http.StatusAccepted)
	want(t, "charged bytes", seen.Bytes, int64(5))
}

// onlyReader hides WriteTo, so that io.Copy asks the writer.
type onlyReader struct{ io.Reader }

func TestHijackBehindWrappedWriter(t *testing.T) {
	for name, hijack := range map[string]func(http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error){
		"assertion": func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) { return w.(http.Hijacker).Hijack() },
		"controller": func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) {
			return http.NewResponseController(w).Hijack()
		},
	} {
		resp, body, seen := charged(t, func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := hijack(w)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			defer func() { _ = conn.Close() }()
			_, _ = io.WriteString(conn, "HTTP/1.1 418 Own\r\nContent-Length: 3\r\nConnection: close\r\n\r\nown")
		})
		want(t, name+": status", resp.StatusCode, http.StatusTeapot)
		want(t, name+": body", body, "own")
		want(t, name+": charged status", seen.Status, http.StatusSwitchingProtocols)
	}
}
