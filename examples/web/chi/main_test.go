package main

import (
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/resilient-go/limiter/internal/redistest"
)

// The sixth request gets 429 and reaches no handler; another address notices nothing.
func TestSixthRequestIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler, lim, err := newHandler(redistest.Bubble(t).Client())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = lim.Close() }()
		for _, c := range []struct {
			addr, body, after string
			status            int
		}{
			{"203.0.113.7:1", "hello, 4 left\n", "", 200},
			{"203.0.113.7:2", "hello, 3 left\n", "", 200},
			{"203.0.113.7:3", "hello, 2 left\n", "", 200},
			{"203.0.113.7:4", "hello, 1 left\n", "", 200},
			{"203.0.113.7:5", "hello, 0 left\n", "", 200},
			{"203.0.113.7:6", "Too Many Requests\n", "12", 429},
			{"198.51.100.9:1", "hello, 4 left\n", "", 200},
		} {
			r := httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr = c.addr
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if w.Code != c.status || w.Body.String() != c.body || w.Header().Get("Retry-After") != c.after {
				t.Errorf("%s: %d %q, Retry-After %q; want %d %q, %q", c.addr, w.Code, w.Body, w.Header().Get("Retry-After"), c.status, c.body, c.after)
			}
		}
	})
}

func TestMistakesAreExplained(t *testing.T) {
	for _, c := range []struct{ redis, addr, want string }{
		{"127.0.0.1:6379", "nonsense", "choose another address with -addr"},
		{"redis://127.0.0.1:6379", "127.0.0.1:0", "want host:port"},
	} {
		if err := run(c.redis, c.addr); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("-redis %s -addr %s: %v, want %q", c.redis, c.addr, err, c.want)
		}
	}
}
