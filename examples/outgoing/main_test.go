package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/resilient-go/limiter/internal/redistest"
	"github.com/resilient-go/limiter/internal/transcript"
)

func TestMain(m *testing.M) {
	redistest.SilenceClientLog()
	goleak.VerifyTestMain(m)
}

func TestOutputIsThatOfTheReadme(t *testing.T) {
	transcript.Check(t, func(out io.Writer) error { return run(t.Context(), out, "") }, `in \d[\d.]*s`)
}

// A handlerTripper answers without a network.
type handlerTripper struct{ http.Handler }

func (h handlerTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), nil
}

// All calls of both instances are answered, none is refused, and they take as long as
// one bucket of the quota needs for them.
func TestTwoInstancesKeepOneQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		redis := redistest.Bubble(t)
		service := handlerTripper{theirs()}
		var clients []*http.Client
		for range instances {
			c, lim, err := client(redis.Client(), service)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = lim.Close() }()
			clients = append(clients, c)
		}
		began := time.Now()
		answered, refused := call(t.Context(), clients, "http://service.test/")
		if answered != instances*each || refused != 0 {
			t.Errorf("%d answered, %d refused; want all %d", answered, refused, instances*each)
		}
		// 30 calls, of which 5 pass at once and the rest at 10 per second.
		if took := time.Since(began); took < 2500*time.Millisecond || took > 3*time.Second {
			t.Errorf("they took %v, want 2.5 s and little more", took)
		}
	})
}

// The control: without the quota the service refuses most.
func TestWithoutTheQuotaTheServiceRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plain := &http.Client{Transport: handlerTripper{theirs()}}
		answered, refused := call(t.Context(), []*http.Client{plain, plain}, "http://service.test/")
		if answered != 10 || refused != 20 {
			t.Errorf("%d answered, %d refused; want 10 and 20", answered, refused)
		}
	})
}
