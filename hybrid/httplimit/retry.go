package httplimit

import (
	"bytes"
	"io"
	"net/http"
	"time"
)

// retryable reports whether an answer says that the request was not served, and
// the request can be made again.
func retryable(req *http.Request, resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusTooManyRequests: // refused before anything was done
	case http.StatusServiceUnavailable: // it may have been done in part
		if !idempotent(req) {
			return false
		}
	default:
		return false
	}
	return req.Body == nil || req.Body == http.NoBody || req.GetBody != nil
}

func idempotent(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return req.Header.Get("Idempotency-Key") != "" || req.Header.Get("X-Idempotency-Key") != ""
}

// again returns the request to send in place of one that was answered with a
// refusal, when it may be sent. It returns nil if the answer is to be returned
// instead, and an error only if the context has ended.
func (t *Transport) again(req *http.Request, key string, resp *http.Response, retry int) (*http.Request, error) {
	ctx := req.Context()
	delay := t.delay(retry)
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= max(delay, t.pauses.left(key, time.Now())) {
		return nil, ctx.Err()
	}
	buffer(resp)
	if err := sleep(ctx, delay); err != nil {
		return nil, ctx.Err()
	}
	if err := t.admit(ctx, key); err != nil {
		return nil, ctx.Err()
	}
	clone := req.WithContext(ctx) // a shallow copy
	if req.Body != nil && req.Body != http.NoBody {
		body, err := req.GetBody()
		if err != nil {
			return nil, nil
		}
		clone.Body = body
	}
	return clone, nil
}

// delay is the back-off before a retry.
func (t *Transport) delay(retry int) time.Duration {
	most := t.maxBackoff
	if t.backoff <= most>>retry { // else it would be above the cap, or overflow
		most = t.backoff << retry
	}
	return 1 + time.Duration(t.random(int64(most)))
}

// bufferMost is how much of a refusal's body is kept in memory while its retry
// waits.
const bufferMost = 16 << 10

// buffer frees the connection of a response while it is not yet known whether it
// will be returned, unless its body is long.
func buffer(resp *http.Response) {
	if resp.Body == nil || resp.Body == http.NoBody {
		return
	}
	start, err := io.ReadAll(io.LimitReader(resp.Body, bufferMost))
	rest := io.Reader(resp.Body)
	switch {
	case err != nil:
		rest = failing{err}
		_ = resp.Body.Close()
	case len(start) < bufferMost:
		rest = http.NoBody
		_ = resp.Body.Close()
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(start), rest), resp.Body}
}

// failing is a reader that ends with an error.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
