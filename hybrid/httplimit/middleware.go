package httplimit

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/resilient-go/limiter/hybrid"
)

// A Limiter decides requests. [*hybrid.Limiter] is one; a test may use its own.
type Limiter interface {
	// Take decides a request for N tokens of a key; N = 0 only looks.
	Take(ctx context.Context, r hybrid.Request) (hybrid.Result, error)
}

// ErrNoKey says that a request has no key, for instance because a header is
// missing.
var ErrNoKey = errors.New("httplimit: the request has no key")

// New returns a middleware that asks lim for one token per request, or what
// [WithCost] says, before it calls the next handler.
//
// Middlewares on one limiter share its buckets: the same key is the same bucket.
// The next handler gets the decision by [FromContext], and its ResponseWriter as
// it is, except with [WithCostAfter] and [WithSettle].
//
// The error is a [*ConfigError].
func New(lim Limiter, options ...Option) (func(http.Handler) http.Handler, error) {
	if isNil(lim) {
		return nil, &ConfigError{Field: "New", Reason: "the limiter is nil"}
	}
	c := newConfig(options)
	if err := c.validate(); err != nil {
		return nil, err
	}
	m := &middleware{config: c, lim: lim, epoch: time.Now()}
	if c.settle != nil {
		var ok bool
		if m.settling, ok = lim.(SettlingLimiter); !ok {
			return nil, bad("WithSettle", "%T cannot reserve", lim)
		}
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.serve(w, r, next) })
	}, nil
}

type middleware struct {
	config
	lim    Limiter
	policy atomic.Pointer[policy] // of the limit seen last

	settling SettlingLimiter // lim, with WithSettle

	epoch    time.Time
	complain [complaints]atomic.Int64 // when each may be logged again, since epoch
}

// serve is what happens to a request. No lock is held.
func (m *middleware) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	n := 1
	switch {
	case m.costAfter != nil:
		n = 0 // only look
	case m.cost != nil:
		if n = m.cost(r); n == 0 {
			next.ServeHTTP(w, r)
			return
		}
	}
	key := m.key.Of(r)
	if key == "" {
		if !m.passEmpty {
			m.fail(w, r, ErrNoKey, next)
			return
		}
		m.warn(r, complaintPassed, "httplimit: a request without a key passes without a limit")
		next.ServeHTTP(w, r)
		return
	}
	res, booked, err := m.decide(r.Context(), hybrid.Request{Key: key, N: n})
	if err != nil {
		m.fail(w, r, err, next)
		return
	}
	m.announce(w.Header(), key, res)
	r = r.WithContext(context.WithValue(r.Context(), resultKey{}, res))
	switch {
	case !res.Allowed:
		m.refuse(w, r, res)
	case booked != nil:
		m.serveThenSettle(w, r, next, booked)
	case m.costAfter != nil:
		m.serveThenCharge(w, r, next, key, res)
	default:
		next.ServeHTTP(w, r)
	}
}

type resultKey struct{}

// FromContext returns the decision on a request, from the context of the request
// that a handler got. Of nested limiters it is that of the innermost. It reports
// false if none decided: outside of a middleware, or if the request cost nothing.
func FromContext(ctx context.Context) (hybrid.Result, bool) {
	res, ok := ctx.Value(resultKey{}).(hybrid.Result)
	return res, ok
}

// The things that are worth a line in the log, each at most once a minute.
const (
	complaintRefused = iota
	complaintPassed
	complaintFailed
	complaintCharge
	complaints
)

const complainEvery = time.Minute

// warn logs a fault that may come with every request.
func (m *middleware) warn(r *http.Request, kind int, text string, args ...any) {
	now := int64(time.Since(m.epoch))
	due := m.complain[kind].Load()
	if now < due || !m.complain[kind].CompareAndSwap(due, now+int64(complainEvery)) {
		return
	}
	m.log.WarnContext(r.Context(), text, append(args, "method", r.Method, "route", r.Pattern)...)
}

// isNil also finds a nil pointer in an interface.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	switch rv := reflect.ValueOf(v); rv.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Chan, reflect.Slice, reflect.Interface:
		return rv.IsNil()
	default:
		return false
	}
}
