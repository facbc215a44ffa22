package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
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
	transcript.Check(t, func(out io.Writer) error { return run(t.Context(), out, "", "127.0.0.1:0", false) }, `:\d{4,5}/`)
}

// The eleventh request in a second gets 429 with a Retry-After that is worth waiting
// for, and another address notices nothing.
func TestEleventhRequestIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler, lim, err := newHandler(redistest.Bubble(t).Client())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = lim.Close() }()
		get := func(client string) *http.Response {
			r := httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr = "127.0.0.1:1234"
			r.Header.Set("X-Forwarded-For", client)
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			return w.Result()
		}
		for i := range 10 {
			if got := get("203.0.113.7").StatusCode; got != 200 {
				t.Errorf("request %d: %d, want 200", i+1, got)
			}
		}
		refused := get("203.0.113.7")
		if got := refused.Header.Get("Retry-After"); refused.StatusCode != 429 || got != "1" {
			t.Errorf("the eleventh: %d, Retry-After %q; want 429 and 1", refused.StatusCode, got)
		}
		if got := get("198.51.100.9").StatusCode; got != 200 {
			t.Errorf("another address: %d, want 200", got)
		}
		time.Sleep(time.Second)
		if got := get("203.0.113.7").StatusCode; got != 200 {
			t.Errorf("after Retry-After: %d, want 200", got)
		}
	})
}

func TestMistakesAreExplained(t *testing.T) {
	for _, c := range []struct{ redis, addr, want string }{
		{"localhost", "127.0.0.1:0", "want redis://"},
		{"redis://127.0.0.1:1", "127.0.0.1:0", "leave out -redis"},
		{"", "nonsense", "choose another address with -addr"},
	} {
		if err := run(t.Context(), io.Discard, c.redis, c.addr, false); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
