package httplimit_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/hybrid/httplimit"
)

// A partner that is busy for once is asked again; how long it may hold us up is ours
// to say.
func ExampleWithRetries() {
	var asked atomic.Int64
	partner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer partner.Close()
	lim, stop := newLimiter(hybrid.PerMinute(10))
	defer stop()

	transport, err := httplimit.NewTransport(lim, nil,
		httplimit.WithRetries(2),
		httplimit.WithBackoff(time.Millisecond, 10*time.Millisecond),
		httplimit.WithMaxPause(20*time.Millisecond), // of the hour that it asked for
		httplimit.WithMaxPauses(100))
	if err != nil {
		log.Fatal(err)
	}
	hc := &http.Client{Transport: transport}
	defer hc.CloseIdleConnections()
	resp, err := hc.Get(partner.URL)
	if err != nil {
		log.Fatal(err)
	}
	_ = resp.Body.Close()
	fmt.Println(resp.Status, "asked", asked.Load(), "times")
	// Output: 200 OK asked 2 times
}
