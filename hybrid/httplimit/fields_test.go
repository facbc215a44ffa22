package httplimit_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"math"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/hybrid/httplimit"
)

// Retry-After is what is left, in whole seconds, rounded up, and never 0.
func TestRetryAfterIsWholeSeconds(t *testing.T) {
	for _, c := range []struct {
		after time.Duration
		limit hybrid.Limit
		text  string
	}{
		{1, hybrid.Per(5, 200*time.Millisecond), "1"},
		{100 * time.Millisecond, hybrid.Per(5, 200*time.Millisecond), "1"},
		{493 * time.Millisecond, hybrid.PerSecond(1), "1"},
		{time.Second, hybrid.PerMinute(1), "1"},
		{time.Second + 1, hybrid.PerMinute(1), "2"},
		{59*time.Second + 999*time.Millisecond, hybrid.PerMinute(1), "60"},
		{25 * time.Minute, hybrid.PerHour(1), "1500"},
		{0, hybrid.PerHour(1), "1"},
		{-time.Second, hybrid.PerHour(1), "1"},
		{math.MaxInt64, hybrid.PerHour(1), "9223372037"},
	} {
		res := hybrid.Result{Limit: c.limit, RetryAfter: c.after}
		w := serve(middleware(t, says(res, nil))(ok), get(client))
		want(t, "Retry-After of "+c.after.String(), w.Header().Get("Retry-After"), c.text)
		want(t, "RateLimit of "+c.after.String(), w.Header().Get("RateLimit"), strconv.Quote(c.limit.String())+";r=0;t="+c.text)
	}
}

func TestRateLimitFields(t *testing.T) {
	legacy := httplimit.WithLegacyFields(httplimit.ResetSeconds)
	for _, c := range []struct {
		name          string
		limit         hybrid.Limit
		remaining     int
		options       []httplimit.Option
		policy, state string
	}{
		{"a second", hybrid.PerSecond(100), 60, nil, `"100/s";q=100;w=1`, `"100/s";r=60;t=1`},
		{"an hour", hybrid.PerHour(1000), 999, nil, `"1000/h";q=1000;w=3600`, `"1000/h";r=999;t=3597`},
		{"an hour used up", hybrid.PerHour(1000), 0, nil, `"1000/h";q=1000;w=3600`, `"1000/h";r=0;t=4`},
		{
			"smaller burst", hybrid.PerHour(1000).WithBurst(50), 10, nil,
			`"1000/h burst 50";q=1000;w=3600;limiter-burst=50`, `"1000/h burst 50";r=10;t=36`,
		},
		{"odd period", hybrid.Per(7, 3*time.Second), 6, nil, `"7/3s";q=7;w=3`, `"7/3s";r=6;t=3`},
		{
			"part of a second", hybrid.Per(10, 200*time.Millisecond), 10, nil,
			`"10/200ms";q=50;w=1;limiter-burst=10`, `"10/200ms";r=10;t=1`,
		},
		{
			"one and a half seconds", hybrid.Per(4, 1500*time.Millisecond), 4, nil,
			`"4/1.5s";q=8;w=3;limiter-burst=4`, `"4/1.5s";r=4;t=2`,
		},
		{
			"no whole seconds", hybrid.Per(10, 333_333_333), 1, nil,
			`"10/333.333333ms";q=30;w=1;limiter-burst=10`, `"10/333.333333ms";r=1;t=1`,
		},
		{
			"a name that is not ASCII", hybrid.Per(1, time.Microsecond), 1, nil,
			`"1/1?s";q=1000000;w=1;limiter-burst=1`, `"1/1?s";r=1;t=1`,
		},
		{
			"own name", hybrid.PerSecond(100), 60,
			[]httplimit.Option{httplimit.WithPolicyName(`say "\o/"`)},
			`"say \"\\o/\"";q=100;w=1`, `"say \"\\o/\"";r=60;t=1`,
		},
		{"remaining of a fake below 0", hybrid.PerSecond(100), -1, nil, `"100/s";q=100;w=1`, `"100/s";r=0;t=1`},
		{"left out", hybrid.PerSecond(100), 60, []httplimit.Option{httplimit.WithoutFields()}, "", ""},
		{"the zero limit of a fake", hybrid.Limit{}, 60, nil, "", ""},
		{"no limit", hybrid.Unlimited, math.MaxInt, []httplimit.Option{legacy}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := hybrid.Result{Allowed: true, Limit: c.limit, Remaining: c.remaining}
			w := serve(middleware(t, says(res, nil), c.options...)(ok), get(client))
			want(t, "RateLimit-Policy", w.Header().Get("RateLimit-Policy"), c.policy)
			want(t, "RateLimit", w.Header().Get("RateLimit"), c.state)
			want(t, "X-RateLimit-Limit", w.Header().Get("X-RateLimit-Limit"), "")
			for _, field := range []string{"RateLimit-Policy", "RateLimit"} {
				if _, err := httplimit.ParseList(w.Header()[http.CanonicalHeaderKey(field)]...); err != nil {
					t.Errorf("%s: %v", field, err)
				}
			}
		})
	}
}

// One middleware may see more than one limit, as when the limit is changed.
func TestFieldsFollowTheLimit(t *testing.T) {
	lim := &fake{}
	h := middleware(t, lim)(ok)
	for _, n := range []int{1, 2, 2, 1} {
		lim.answer = func(hybrid.Request) (hybrid.Result, error) {
			return hybrid.Result{Allowed: true, Limit: hybrid.PerSecond(n)}, nil
		}
		name := strconv.Quote(strconv.Itoa(n) + "/s")
		w := serve(h, get(client))
		want(t, "RateLimit-Policy", w.Header().Get("RateLimit-Policy"), name+";q="+strconv.Itoa(n)+";w=1")
		want(t, "RateLimit", w.Header().Get("RateLimit"), name+";r=0;t=1")
	}
}

func TestPartitionKey(t *testing.T) {
	secret := []byte("0123456789abcdef")
	m := middleware(t, says(allowed, nil), httplimit.WithPartitionKey(secret))
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("203.0.113.7"))
	pk := ";pk=:" + base64.StdEncoding.EncodeToString(mac.Sum(nil)[:16]) + ":"
	clear(secret) // the option has a copy
	w := serve(m(ok), get(client))
	want(t, "RateLimit-Policy", w.Header().Get("RateLimit-Policy"), `"100/s";q=100;w=1`+pk)
	want(t, "RateLimit", w.Header().Get("RateLimit"), `"100/s";r=60;t=1`+pk)
}

func result(limit hybrid.Limit, remaining int) hybrid.Result {
	return hybrid.Result{Allowed: true, Limit: limit, Remaining: remaining}
}

func TestNestedLimiters(t *testing.T) {
	second, hour := hybrid.PerSecond(10), hybrid.PerHour(100)
	secret := httplimit.WithPartitionKey([]byte("0123456789abcdef"))
	for _, c := range []struct {
		name                   string
		outer, inner           hybrid.Result
		outerOption, innerOpt  httplimit.Option
		before, policy, limits string
	}{
		{
			name: "different policies", outer: result(second, 5), inner: result(hour, 50),
			policy: `"10/s";q=10;w=1, "100/h";q=100;w=3600`, limits: `"10/s";r=5;t=1, "100/h";r=50;t=1800`,
		},
		{
			name: "one policy, the inner stricter", outer: result(second, 5), inner: result(second, 3),
			policy: `"10/s";q=10;w=1`, limits: `"10/s";r=3;t=1`,
		},
		{
			name: "one policy, the outer stricter", outer: result(second, 5), inner: result(second, 7),
			policy: `"10/s";q=10;w=1`, limits: `"10/s";r=5;t=1`,
		},
		{
			name: "one policy, the inner refuses", outer: result(second, 0),
			inner:  hybrid.Result{Limit: second, RetryAfter: 9 * time.Second},
			policy: `"10/s";q=10;w=1`, limits: `"10/s";r=0;t=9`,
		},
		{
			name: "names", outer: result(second, 5), inner: result(second, 7),
			outerOption: httplimit.WithPolicyName("all"), innerOpt: httplimit.WithPolicyName("user"),
			policy: `"all";q=10;w=1, "user";q=10;w=1`, limits: `"all";r=5;t=1, "user";r=7;t=1`,
		},
		{
			name: "different partitions", outer: result(second, 5), inner: result(second, 7), outerOption: secret,
			policy: `"10/s";q=10;w=1;pk=:4l56oV8Y55o/0CqPo1sRwg==:, "10/s";q=10;w=1`,
			limits: `"10/s";r=5;t=1;pk=:4l56oV8Y55o/0CqPo1sRwg==:, "10/s";r=7;t=1`,
		},
		{
			name: "malformed ones from elsewhere are replaced", outer: result(second, 5), inner: result(hour, 50), before: `"10/s;r=`,
			policy: `"10/s";q=10;w=1, "100/h";q=100;w=3600`, limits: `"10/s";r=5;t=1, "100/h";r=50;t=1800`,
		},
		{
			name: "others from elsewhere stay", outer: result(second, 5), inner: result(second, 4), before: `edge;r=3, "10/s";r=4;t=7;x="a,b"`,
			policy: `edge;r=3, "10/s";q=10;w=1`, limits: `edge;r=3, "10/s";r=4;t=7;x="a,b"`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := middleware(t, says(c.inner, nil), c.innerOpt)(ok)
			h = middleware(t, says(c.outer, nil), c.outerOption)(h)
			w := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if c.before != "" {
					w.Header().Set("RateLimit", c.before)
					w.Header().Set("RateLimit-Policy", c.before)
				}
				h.ServeHTTP(w, r)
			}), get(client))
			wantList(t, "RateLimit-Policy", w.Header().Values("RateLimit-Policy"), []string{c.policy})
			wantList(t, "RateLimit", w.Header().Values("RateLimit"), []string{c.limits})
			if !c.inner.Allowed {
				wantList(t, "Retry-After", w.Header().Values("Retry-After"), []string{"9"})
			}
		})
	}
}

func TestLegacyFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(300 * time.Millisecond)
		unix := func(s int64) string { return strconv.FormatInt(time.Now().Unix()+s, 10) }
		full := func(remaining int, after time.Duration) hybrid.Result {
			return hybrid.Result{Allowed: true, Limit: hybrid.PerHour(1000).WithBurst(50), Remaining: remaining, ResetAfter: after}
		}
		for _, c := range []struct {
			name         string
			outer, inner hybrid.Result
			reset        httplimit.LegacyReset
			texts        []string
		}{
			{"seconds", full(49, 3600*time.Millisecond), full(49, 0), httplimit.ResetSeconds, []string{"50", "49", "4"}},
			{"full", full(50, 0), full(50, 0), httplimit.ResetSeconds, []string{"50", "50", "0"}},
			{"unix", full(49, 3600*time.Millisecond), full(49, 0), httplimit.ResetUnix, []string{"50", "49", unix(4)}},
			{"unix, rounded up", full(49, 3800*time.Millisecond), full(49, 0), httplimit.ResetUnix, []string{"50", "49", unix(5)}},
			{"far away", full(49, math.MaxInt64), full(49, 0), httplimit.ResetUnix, []string{"50", "49", unix(9223372037)}},
			{"the inner is stricter", full(49, 0), full(3, time.Minute), httplimit.ResetSeconds, []string{"50", "3", "60"}},
			{"the outer is stricter", full(3, time.Minute), full(49, 0), httplimit.ResetSeconds, []string{"50", "3", "60"}},
		} {
			legacy := httplimit.WithLegacyFields(c.reset)
			w := serve(middleware(t, says(c.outer, nil), legacy)(middleware(t, says(c.inner, nil), legacy)(ok)), get(client))
			for i, name := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
				wantList(t, c.name+": "+name, w.Header().Values(name), c.texts[i:i+1])
			}
		}
	})
}

func TestNoLegacyFieldsByDefault(t *testing.T) {
	w := serve(middleware(t, says(allowed, nil))(ok), get(client))
	for _, name := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
		wantList(t, name, w.Header().Values(name), nil)
	}
}
