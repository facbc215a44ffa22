package httplimit

import (
	"context"
	"errors"
	"math"
	"net/http"

	"github.com/resilient-go/limiter/hybrid"
)

// A SettlingLimiter is what [WithSettle] needs. [hybrid.Limiter] is one.
type SettlingLimiter interface {
	Limiter
	ReserveNow(ctx context.Context, r hybrid.Request) (*hybrid.Reservation, error)
}

// PerBytes is the cost of a response for [WithSettle]: one token for each n bytes of
// its body and for the rest, n ≥ 1. An empty body costs nothing.
func PerBytes(n int64) func(Response) int {
	n = max(1, n)
	return func(resp Response) int {
		tokens := resp.Bytes / n
		if resp.Bytes%n != 0 {
			tokens++
		}
		return int(min(tokens, math.MaxInt))
	}
}

// decide asks the limiter. With [WithSettle] there is a reservation if the request
// was admitted.
func (m *middleware) decide(ctx context.Context, r hybrid.Request) (hybrid.Result, *hybrid.Reservation, error) {
	if m.settle == nil {
		res, err := m.lim.Take(ctx, r)
		return res, nil, err
	}
	booked, err := m.settling.ReserveNow(ctx, r)
	var limited *hybrid.LimitedError
	switch {
	case errors.As(err, &limited):
		return limited.Result, nil, nil
	case err != nil:
		return hybrid.Result{}, nil, err
	}
	return booked.Result(), booked, nil
}

// serveThenSettle calls the handler and settles what its response has cost.
func (m *middleware) serveThenSettle(w http.ResponseWriter, r *http.Request, next http.Handler, booked *hybrid.Reservation) {
	observe(w, r, next, func(resp Response) {
		_ = booked.Settle(max(0, m.settle(resp))) // it fails for costs below 0 only
	})
}
