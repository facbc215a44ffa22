package httplimit_test

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid/httplimit"
)

// now is a time in the middle of a second.
var now = time.Date(2026, 11, 30, 15, 24, 49, 500_000_000, time.UTC)

func TestRetryAfterOfTheRemoteSide(t *testing.T) {
	for _, c := range []struct {
		text, date string
		pause      time.Duration
	}{
		{"", "", 0},
		{"0", "", 0},
		{"1", "", time.Second},
		{" 120\t", "", 2 * time.Minute},
		{"007", "", 7 * time.Second},
		{"0.493", "", 493 * time.Millisecond}, // not allowed, and yet sent
		{"99999999999999999999999", "", math.MaxInt64},
		{"9" + strings.Repeat("0", 400), "", math.MaxInt64},
		{"Mon, 30 Nov 2026 15:25:49 GMT", "", 59*time.Second + 500*time.Millisecond},
		{"Monday, 30-Nov-26 15:25:49 GMT", "", 59*time.Second + 500*time.Millisecond},
		{"Mon Nov 30 15:25:49 2026", "", 59*time.Second + 500*time.Millisecond},
		{"Mon, 30 Nov 2026 15:00:00 GMT", "", 0},
		// The clocks differ by an hour.
		{"Mon, 30 Nov 2026 16:25:49 GMT", "Mon, 30 Nov 2026 16:24:49 GMT", time.Minute},
		{"Mon, 30 Nov 2026 16:25:49 GMT", "no date", time.Hour + 59*time.Second + 500*time.Millisecond},

		// Malformed: nothing is asked for.
		{"Mon, 30 Nov 2026 15:25:49 UTC", "", 0},
		{"-1", "", 0},
		{"+1", "", 0},
		{"1e9", "", 0},
		{"1.", "", 0},
		{".5", "", 0},
		{"1.2.3", "", 0},
		{"1s", "", 0},
		{"NaN", "", 0},
		{"Inf", "", 0},
		{"soon", "", 0},
		{"1, 2", "", 0},
	} {
		resp := response(429)
		resp.Header.Set("Retry-After", c.text)
		if c.date != "" {
			resp.Header.Set("Date", c.date)
		}
		want(t, "pause of "+c.text, httplimit.PauseAsked(resp, now), c.pause)
	}
}

func TestRateLimitOfTheRemoteSide(t *testing.T) {
	for _, c := range []struct {
		pause   time.Duration
		headers []string
	}{
		{0, []string{"RateLimit", `"a";r=1;t=60`}},
		{time.Minute, []string{"RateLimit", `"a";r=0;t=60`}},
		{time.Minute, []string{"RateLimit", `a;r=0;t=60`}}, // a token, as revisions differ
		{time.Minute, []string{"RateLimit", `"a";t=60;r=0;pk=:cHsdsRa894==:;x`}},
		{time.Minute, []string{"RateLimit", `"a";r=0;t=1`, "RateLimit", `"b";r=0;t=60, "c";r=9;t=99`}},
		{time.Minute, []string{"RateLimit", `"a";r=0;t=60`, "Age", "0"}},
		{math.MaxInt64, []string{"RateLimit", `"a";r=0;t=999999999999999`}},
		{0, []string{"RateLimit", `"a";r=0;t=60`, "Age", "1"}}, // from a cache
		{0, []string{"RateLimit", `"a";r=0`}},
		{0, []string{"RateLimit", `"a";r=0;t=0`}},
		{0, []string{"RateLimit", `"a";t=60`}},
		{0, []string{"RateLimit", `"a";r=-1;t=60`}},
		{0, []string{"RateLimit", `"a";r=0;t=-60`}},
		{0, []string{"RateLimit", `"a";r=0.0;t=60`}},
		{0, []string{"RateLimit", `"a";r="0";t=x`}},
		{0, []string{"RateLimit", `5;r=0;t=60`}},
		{0, []string{"RateLimit", `"a";r=0;t=60, "b`}}, // one that is malformed spoils the field
		{0, []string{"RateLimit", `limit=10, remaining=0, reset=60`}},
		{0, []string{"RateLimit", ``}},
		{0, []string{"RateLimit-Policy", `"a";r=0;t=60`}},
	} {
		want(t, "pause", httplimit.PauseAsked(response(200, c.headers...), now), c.pause)
	}
}

// Whatever a remote side sends, it asks for no negative pause, and what it says
// in a number of seconds is what is understood.
func FuzzRemoteHeaders(f *testing.F) {
	for _, s := range []string{"", "7", "0.493", "Mon, 30 Nov 2026 15:25:49 GMT", `"a";r=0;t=60`, `"a`, "99999999999999999999", "-1"} {
		f.Add(s, s, s)
	}
	f.Fuzz(func(t *testing.T, retryAfter, rateLimit, date string) {
		resp := response(http.StatusTooManyRequests, "Retry-After", retryAfter, "RateLimit", rateLimit, "Date", date)
		if d := httplimit.PauseAsked(resp, now); d < 0 {
			t.Errorf("Retry-After %q, RateLimit %q, Date %q: a pause of %v", retryAfter, rateLimit, date, d)
		}
		if s, err := strconv.ParseUint(retryAfter, 10, 32); err == nil {
			want(t, "pause of "+retryAfter, httplimit.PauseAsked(resp, now), time.Duration(s)*time.Second)
		}
	})
}
