package httplimit_test

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/hybrid/httplimit"
	"github.com/resilient-go/limiter/internal/redistest"
)

var _ httplimit.SettlingLimiter = (*hybrid.Limiter)(nil)

// page answers with as many bytes as the request says.
var page = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	n, _ := strconv.Atoi(r.Header.Get("Bytes"))
	_, _ = w.Write(make([]byte, n))
})

// sized is a request for so many bytes.
func sized(bytes int) *http.Request { return get(client, "Bytes", strconv.Itoa(bytes)) }

func TestBytesAreSettled(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerHour(100))
		h := middleware(t, lim, httplimit.WithCost(func(*http.Request) int { return 50 }),
			httplimit.WithSettle(httplimit.PerBytes(1000)))(page)
		for i, c := range []struct {
			bytes, status int
			remaining     string // of the estimate
			left          int    // when it is settled
		}{
			{10_000, 200, "50", 90},
			{0, 200, "40", 90},
			{29_001, 200, "40", 60},
			{130_000, 200, "10", 0}, // a debt of 70
			{1, 429, "0", 0},
		} {
			w := serve(h, sized(c.bytes))
			want(t, "status "+strconv.Itoa(i), w.Code, c.status)
			_, told, _ := strings.Cut(w.Header().Get("RateLimit"), ";r=")
			told, _, _ = strings.Cut(told, ";")
			want(t, "remaining", told, c.remaining)
			synctest.Wait()
			res, err := lim.Peek(t.Context(), "203.0.113.7")
			want(t, "error", err, nil)
			want(t, "left", res.Remaining, c.left)
			if c.status == 429 { // for 70 + 50 tokens
				want(t, "retry after", w.Header().Get("Retry-After"), strconv.Itoa(120*36))
			}
		}
		want(t, "unaccounted", lim.Stats().TokensUnaccounted, 0)
	})
}

// Requests that are under way have their tokens, unlike where only the response costs.
func TestRequestsUnderWayHaveTheirTokens(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerHour(3))
		var served atomic.Int64
		h := middleware(t, lim, httplimit.WithSettle(failures))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			served.Add(1)
			time.Sleep(time.Second)
		}))
		codes := make(chan int, 5)
		for range 5 {
			go func() { codes <- serve(h, get(client)).Code }()
		}
		time.Sleep(500 * time.Millisecond)
		want(t, "under way", served.Load(), 3)
		want(t, "refused", len(codes), 2)
		time.Sleep(time.Second) // none of them was a failure: all costs nothing
		res, err := lim.Peek(t.Context(), "203.0.113.7")
		want(t, "error", err, nil)
		want(t, "left", res.Remaining, 3)
	})
}

func TestAPanicIsSettled(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerHour(10))
		status := 0
		h := middleware(t, lim, httplimit.WithSettle(func(resp httplimit.Response) int {
			status = resp.Status
			return -7 // counts as nothing
		}))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("handler") }))
		func() {
			defer func() { want(t, "panic", recover(), any("handler")) }()
			serve(h, get(client))
		}()
		want(t, "status", status, 500)
		synctest.Wait()
		res, err := lim.Peek(t.Context(), "203.0.113.7")
		want(t, "error", err, nil)
		want(t, "left", res.Remaining, 10)
	})
}

// In an outage this instance's part is settled.
func TestSettleInAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerHour(100), hybrid.WithExpectedInstances(2))
		h := middleware(t, lim, httplimit.WithCost(func(*http.Request) int { return 20 }),
			httplimit.WithSettle(httplimit.PerBytes(1)))(page)
		r.Kill()
		for !lim.Stats().Degraded {
			serve(h, get("198.51.100.1:1"))
		}
		for i, c := range []struct{ bytes, status int }{{5, 200}, {5, 200}, {35, 200}, {20, 429}} {
			want(t, "status "+strconv.Itoa(i), serve(h, sized(c.bytes)).Code, c.status)
		}
	})
}

func TestSettlingNeedsALimiterThatReserves(t *testing.T) {
	cost := httplimit.PerBytes(1)
	for _, c := range []struct {
		lim     httplimit.Limiter
		options []httplimit.Option
		field   string
	}{
		{buckets(1), []httplimit.Option{httplimit.WithSettle(cost)}, "WithSettle"},
		{new(hybrid.Limiter), []httplimit.Option{httplimit.WithSettle(cost), httplimit.WithCostAfter(cost)}, "WithCostAfter"},
	} {
		_, err := httplimit.New(c.lim, c.options...)
		var wrong *httplimit.ConfigError
		if !errors.As(err, &wrong) || wrong.Field != c.field {
			t.Errorf("%v, want one of %s", err, c.field)
		}
	}
}

func TestPerBytesRoundsUp(t *testing.T) {
	for _, c := range []struct{ per, bytes, tokens int64 }{
		{1000, 0, 0},
		{1000, 1, 1},
		{1000, 1000, 1},
		{1000, 1001, 2},
		{0, 5, 5},
		{-3, 5, 5},
		{2, math.MaxInt64, min(1<<62, math.MaxInt)},
	} {
		want(t, "tokens", int64(httplimit.PerBytes(c.per)(httplimit.Response{Bytes: c.bytes})), c.tokens)
	}
}
