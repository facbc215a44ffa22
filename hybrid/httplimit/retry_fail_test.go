package httplimit_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/hybrid/httplimit"
)

// A retry that cannot be sent leaves its caller with the answer that there was,
// whole.
func TestRetryThatCannotBeSent(t *testing.T) {
	broken := errors.New("no body")
	for name, c := range map[string]struct {
		timeout time.Duration
		lim     *fake
		options []httplimit.TransportOption
		header  string
		getBody error
		text    string
		took    time.Duration
	}{
		"the back-off is too long": {timeout: 100 * time.Millisecond},
		"the pause is too long":    {timeout: time.Minute, header: "60"},
		"the limiter takes too long": {timeout: time.Minute, lim: &fake{waiting: func(ctx context.Context) (hybrid.Result, error) {
			return hybrid.Result{}, hybrid.ErrWouldExceedDeadline
		}}, took: 100 * time.Millisecond},
		"the limiter is closed": {timeout: time.Minute, lim: &fake{waiting: func(ctx context.Context) (hybrid.Result, error) {
			return hybrid.Result{}, hybrid.ErrClosed
		}}, took: 100 * time.Millisecond},
		"the quota is used up":         {timeout: time.Minute, lim: says(refused, nil), options: []httplimit.TransportOption{httplimit.WithFailFast()}, took: 100 * time.Millisecond},
		"the body cannot be had again": {timeout: time.Minute, getBody: broken, took: 100 * time.Millisecond},
		"the answer is long":           {timeout: time.Minute, getBody: broken, took: 100 * time.Millisecond, text: strings.Repeat("0123456789abcdef", 10_000)},
		"the answer is as long as what is kept": {
			timeout: time.Minute, getBody: broken, took: 100 * time.Millisecond, text: strings.Repeat("0123456789abcdef", 1<<10),
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if c.text == "" {
					c.text = "the body"
				}
				far := &remote{answer: func(int, *http.Request) (*http.Response, error) {
					resp := response(429)
					resp.Body = &body{Reader: strings.NewReader(c.text)}
					if c.header != "" {
						resp.Header.Set("Retry-After", c.header)
					}
					return resp, nil
				}}
				// The first request is admitted in any case.
				first := true
				lim := &fake{
					waiting: func(ctx context.Context) (hybrid.Result, error) {
						if first || c.lim == nil || c.lim.waiting == nil {
							first = false
							return allowed, nil
						}
						return c.lim.waiting(ctx)
					},
					answer: func(r hybrid.Request) (hybrid.Result, error) {
						if first {
							first = false
							return allowed, nil
						}
						return c.lim.answer(r)
					},
				}
				tr := transport(t, lim, far, append(c.options, httplimit.WithRetries(3), longest)...)
				ctx, cancel := context.WithTimeout(t.Context(), c.timeout)
				defer cancel()
				req := request(t, ctx, "PUT", url, strings.NewReader("payload"))
				if c.getBody != nil {
					req.GetBody = func() (io.ReadCloser, error) { return nil, c.getBody }
				}
				begun := time.Now()
				resp, err := tr.RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				text, err := io.ReadAll(resp.Body)
				want(t, "error", err, nil)
				want(t, "status", resp.StatusCode, 429)
				want(t, "body is whole", string(text) == c.text, true)
				want(t, "requests", len(far.at(begun)), 1)
				want(t, "time", time.Since(begun), c.took)
				want(t, "error of Close", resp.Body.Close(), nil)
			})
		})
	}
}

// A caller that leaves while its retry waits gets the context's error.
func TestRetryThatIsBrokenOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := response(429, "Retry-After", "60")
		far := &remote{answer: func(int, *http.Request) (*http.Response, error) { return answer, nil }}
		sent := answer.Body.(*body)
		sent.Reader = strings.NewReader(strings.Repeat("x", 1<<20)) // longer than what is kept
		tr := transport(t, &fake{}, far, httplimit.WithRetries(3))
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(30*time.Second, leave)
		begun := time.Now()
		_, err := trip(t, ctx, tr, url)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the error is %v", err)
		}
		want(t, "time", time.Since(begun), 30*time.Second)
		want(t, "the answer is closed", sent.closed.Load() > 0, true)
	})
}

// An answer whose body breaks off is no other answer for that.
func TestRetryAfterAnAnswerThatBreaksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("connection reset")
		far := &remote{answer: func(int, *http.Request) (*http.Response, error) {
			resp := response(429)
			resp.Body = &body{Reader: io.MultiReader(strings.NewReader("the b"), failingReader{broken})}
			return resp, nil
		}}
		req := request(t, t.Context(), "PUT", url, strings.NewReader("payload"))
		req.GetBody = func() (io.ReadCloser, error) { return nil, io.EOF }
		resp, err := transport(t, &fake{}, far, httplimit.WithRetries(1)).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		want(t, "body", string(text), "the b")
		want(t, "error", err, broken)
		_ = resp.Body.Close()
	})
}

type failingReader struct{ err error }

func (f failingReader) Read([]byte) (int, error) { return 0, f.err }
