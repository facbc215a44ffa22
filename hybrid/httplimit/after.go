package httplimit

import (
	"context"
	"errors"
	"net/http"

	"github.com/resilient-go/limiter/hybrid"
)

// A Response is what [WithCostAfter] and [WithSettle] decide by.
type Response struct {
	// Request as the handler got it.
	Request *http.Request
	// Status of the response: 200 if the handler did not set one, 101 if it took
	// the connection over, 500 if it panicked before it answered.
	Status int
	// Bytes of the body that the handler wrote.
	Bytes int64
}

// serveThenCharge calls the handler and charges what its response costs.
func (m *middleware) serveThenCharge(w http.ResponseWriter, r *http.Request, next http.Handler, key string, look hybrid.Result) {
	observe(w, r, next, func(resp Response) {
		n := m.costAfter(resp)
		if n <= 0 {
			return
		}
		if err := m.charge(context.WithoutCancel(r.Context()), key, n, look.Remaining); err != nil {
			m.warn(r, complaintCharge, "httplimit: a response could not be charged", "error", err)
		}
	})
}

// observe calls the handler and then f with the response, also when the handler
// panics: an attempt that crashes is an attempt.
func observe(w http.ResponseWriter, r *http.Request, next http.Handler, f func(Response)) {
	rec := &recorder{ResponseWriter: w}
	returned := false
	defer func() {
		status := rec.status
		switch {
		case status == 0 && !returned:
			status = http.StatusInternalServerError
		case status == 0:
			status = http.StatusOK
		}
		f(Response{Request: r, Status: status, Bytes: rec.bytes})
	}()
	next.ServeHTTP(rec.wrapped(), r)
	returned = true
}

// charge takes n tokens, or what there is if it is less: else a cost above what
// remains would be free.
func (m *middleware) charge(ctx context.Context, key string, n, remaining int) error {
	for range 4 { // others may take some of what remains meanwhile
		res, err := m.lim.Take(ctx, hybrid.Request{Key: key, N: n})
		switch {
		case errors.Is(err, hybrid.ErrExceedsBurst) && n > remaining:
			n = remaining
		case err != nil || res.Allowed:
			return err
		default:
			n = min(n-1, res.Remaining)
		}
		if n <= 0 {
			return nil
		}
	}
	return nil
}
