package httplimit_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/resilient-go/limiter/hybrid/httplimit"
)

// longest makes the back-off the longest that may be, shortest the shortest.
var (
	longest  = httplimit.WithRandom(func(n int64) int64 { return n - 1 })
	shortest = httplimit.WithRandom(func(int64) int64 { return 0 })
)

func TestBackoff(t *testing.T) {
	const ms = time.Millisecond
	steps := httplimit.WithBackoff(100*ms, 350*ms)
	for name, c := range map[string]struct {
		options []httplimit.TransportOption
		at      []time.Duration
	}{
		"longest":       {[]httplimit.TransportOption{longest, steps}, []time.Duration{0, 100 * ms, 300 * ms, 650 * ms, 1000 * ms}},
		"shortest":      {[]httplimit.TransportOption{shortest, steps}, []time.Duration{0, 1, 2, 3, 4}},
		"constant":      {[]httplimit.TransportOption{longest, httplimit.WithBackoff(ms, ms)}, []time.Duration{0, ms, 2 * ms, 3 * ms, 4 * ms}},
		"the least":     {[]httplimit.TransportOption{longest, httplimit.WithBackoff(1, 1)}, []time.Duration{0, 1, 2, 3, 4}},
		"default":       {[]httplimit.TransportOption{longest}, []time.Duration{0, 100 * ms, 300 * ms, 700 * ms, 1500 * ms}},
		"longest of it": {[]httplimit.TransportOption{longest, httplimit.WithBackoff(time.Hour, 1<<63-1)}, []time.Duration{0, time.Hour, 3 * time.Hour, 7 * time.Hour, 15 * time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				far, lim := answers(status(503)), &fake{}
				tr := transport(t, lim, far, append(c.options, httplimit.WithRetries(4))...)
				begun := time.Now()
				code, err := trip(t, t.Context(), tr, url)
				want(t, "error", err, nil)
				want(t, "status", code, 503)
				wantList(t, "sent", far.at(begun), c.at)
				want(t, "permits", len(lim.requests()), 5)
			})
		})
	}
}

// However many retries, the back-off stays above 0 and within the cap.
func TestBackoffStaysWithinItsCap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const retries, most = 200, 3 * time.Second
		far := answers(status(429))
		tr := transport(t, &fake{}, far, httplimit.WithRetries(retries), httplimit.WithBackoff(time.Millisecond, most))
		begun := time.Now()
		if _, err := trip(t, t.Context(), tr, url); err != nil {
			t.Fatal(err)
		}
		at := far.at(begun)
		want(t, "requests", len(at), retries+1)
		for i := 1; i < len(at); i++ {
			if d := at[i] - at[i-1]; d <= 0 || d > most {
				t.Errorf("back-off %d is %v", i-1, d)
			}
		}
	})
}

// The pause that the answer asks for counts if it is longer than the back-off.
func TestRetriesHonourThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := answers(status(429, "Retry-After", "7"), status(503, "Retry-After", "0"), status(200))
		tr := transport(t, &fake{}, far, httplimit.WithRetries(5), longest)
		begun := time.Now()
		code, err := trip(t, t.Context(), tr, url)
		want(t, "error", err, nil)
		want(t, "status", code, 200)
		wantList(t, "sent", far.at(begun), []time.Duration{0, 7 * time.Second, 7200 * time.Millisecond})
	})
}

func TestWhatIsRetried(t *testing.T) {
	for _, c := range []struct {
		name, method string
		status       int
		header       string
		body         io.Reader
		sent         int
	}{
		{"GET, 429", "GET", 429, "", nil, 3},
		{"GET, 503", "GET", 503, "", nil, 3},
		{"no method is GET", "", 503, "", nil, 3},
		{"PUT, 503", "PUT", 503, "", strings.NewReader("payload"), 3},
		{"POST, 429", "POST", 429, "", strings.NewReader("payload"), 3},
		{"POST without a body, 429", "POST", 429, "", http.NoBody, 3},
		{"POST, 503: it may have been done in part", "POST", 503, "", strings.NewReader("payload"), 1},
		{"POST with an idempotency key, 503", "POST", 503, "Idempotency-Key", strings.NewReader("payload"), 3},
		{"PATCH with an idempotency key, 503", "PATCH", 503, "X-Idempotency-Key", strings.NewReader("payload"), 3},
		{"a body that cannot be had again", "PUT", 429, "", onlyReader{strings.NewReader("payload")}, 1},
		{"200", "GET", 200, "", nil, 1},
		{"500", "GET", 500, "", nil, 1},
		{"404", "GET", 404, "", nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				far := answers(status(c.status))
				req := request(t, t.Context(), c.method, url, c.body)
				req.Method = c.method
				if c.header != "" {
					req.Header.Set(c.header, "1")
				}
				before := req.Body
				resp, err := transport(t, &fake{}, far, httplimit.WithRetries(2)).RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				text, err := io.ReadAll(resp.Body)
				want(t, "error", err, nil)
				want(t, "status", resp.StatusCode, c.status)
				want(t, "body of the answer", string(text), "the body")
				want(t, "requests", len(far.bodies), c.sent)
				for _, b := range far.bodies {
					want(t, "body", b, map[bool]string{true: "payload"}[c.body != nil && c.body != http.NoBody])
				}
				want(t, "the request's own body", req.Body, before)
			})
		})
	}
}

// Answers that are not returned are closed, and so are bodies that were had again.
func TestRetriesCloseWhatTheyReplace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var closed [3]*body
		far := &remote{answer: func(n int, _ *http.Request) (*http.Response, error) {
			resp := response(429)
			closed[n] = resp.Body.(*body)
			if n == 1 { // longer than what is kept
				closed[n].Reader = strings.NewReader(strings.Repeat("x", 1<<20))
			}
			return resp, nil
		}}
		own := &body{Reader: strings.NewReader("payload")}
		req := request(t, t.Context(), "PUT", url, own)
		var again []*body
		req.GetBody = func() (io.ReadCloser, error) {
			again = append(again, &body{Reader: strings.NewReader("payload")})
			return again[len(again)-1], nil
		}
		resp, err := transport(t, &fake{}, far, httplimit.WithRetries(2)).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		for i, b := range closed[:2] {
			if b.closed.Load() == 0 {
				t.Errorf("answer %d was not closed", i)
			}
		}
		want(t, "closed, of the last", closed[2].closed.Load(), 0)
		want(t, "made", len(again), 2)
		for _, b := range again {
			want(t, "closed, of those made", b.closed.Load(), 1)
		}
		want(t, "closed, of the first", own.closed.Load(), 1)
		_ = resp.Body.Close()
		want(t, "closed by the caller", closed[2].closed.Load(), 1)
	})
}

func TestNoRetriesByDefault(t *testing.T) {
	far := answers(status(503))
	if code, err := trip(t, t.Context(), transport(t, &fake{}, far), url); code != 503 {
		t.Error(code, err)
	}
	want(t, "requests", len(far.bodies), 1)
}
