package httplimit_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/hybrid/httplimit"
	"github.com/resilient-go/limiter/internal/redistest"
)

// served is a RoundTripper that calls a handler.
type served struct {
	h    http.Handler
	code map[int]int // answers by status
}

func (s *served) RoundTrip(req *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	in := req.Clone(req.Context())
	in.RemoteAddr = client
	s.h.ServeHTTP(w, in)
	s.code[w.Code]++
	return w.Result(), nil
}

// A client with a Transport understands what the middleware of a server says: it
// waits, and is not refused once.
func TestTransportUnderstandsTheMiddleware(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		server := &served{middleware(t, start(t, r, hybrid.PerMinute(2)))(ok), map[int]int{}}
		tr := transport(t, &fake{}, server)
		begun := time.Now()
		for range 6 {
			if code, err := trip(t, t.Context(), tr, url); code != 200 {
				t.Fatal(code, err)
			}
		}
		want(t, "served", server.code[200], 6)
		want(t, "refused", server.code[429], 0)
		// Two at once, and four more at two a minute.
		want(t, "time", time.Since(begun).Round(time.Second), 2*time.Minute)
	})
}

// Without the fields it is refused now and then, waits for Retry-After, and asks
// again.
func TestTransportRetriesWhatTheMiddlewareRefuses(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		server := &served{middleware(t, start(t, r, hybrid.PerMinute(2)), httplimit.WithoutFields())(ok), map[int]int{}}
		tr := transport(t, &fake{}, server, httplimit.WithRetries(3))
		for range 4 {
			if code, err := trip(t, t.Context(), tr, url); code != 200 {
				t.Fatal(code, err)
			}
		}
		want(t, "served", server.code[200], 4)
		want(t, "refused", server.code[429], 2)
	})
}

// The same over real connections, with a body that is sent again.
func TestTransportOverRealConnections(t *testing.T) {
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if calls.Add(1) < 3 {
			http.Error(w, "busy", http.StatusTooManyRequests)
			return
		}
		_, _ = w.Write(text)
	}))
	defer server.Close()
	base := &http.Transport{MaxConnsPerHost: 1} // an answer that is not let go would block the next
	defer base.CloseIdleConnections()
	hc := &http.Client{Transport: transport(t, &fake{}, base, httplimit.WithRetries(2), httplimit.WithBackoff(1, 1))}
	resp, err := hc.Post(server.URL, "text/plain", strings.NewReader("payload"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	want(t, "error", err, nil)
	want(t, "body", string(text), "payload")
	want(t, "calls", calls.Load(), 3)
}
