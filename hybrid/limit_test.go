package hybrid_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
)

func TestLimitText(t *testing.T) {
	tests := []struct {
		limit hybrid.Limit
		text  string
	}{
		{hybrid.PerSecond(100), "100/s"},
		{hybrid.PerSecond(100).WithBurst(20), "100/s burst 20"},
		{hybrid.PerSecond(100).WithBurst(20).WithBurst(100), "100/s"},
		{hybrid.PerMinute(5), "5/m"},
		{hybrid.PerHour(1_000_000), "1000000/h"},
		{hybrid.Per(3, day), "3/d"},
		{hybrid.Per(1, 366*day), "1/366d"},
		{hybrid.Per(7, 3*time.Second), "7/3s"},
		{hybrid.Per(7, 3*time.Second).WithBurst(1), "7/3s burst 1"},
		{hybrid.Per(1, 1500*time.Millisecond), "1/1.5s"},
		{hybrid.Per(1000, time.Millisecond), "1000/1ms"},
		{hybrid.Per(1, time.Microsecond), "1/1µs"},
		{hybrid.Per(1, time.Nanosecond), "1/1ns"},
		{hybrid.Per(1, 10*time.Minute), "1/10m"},
		{hybrid.Per(1, 90*time.Minute), "1/1h30m"},
		{hybrid.Per(1, 36*time.Hour), "1/36h"},
		{hybrid.Per(1, 20*time.Hour), "1/20h"},
		{hybrid.Per(1, time.Hour+time.Second), "1/1h0m1s"},
		{hybrid.PerSecond(1_000_000_000), "1000000000/s"},
	}
	for _, tt := range tests {
		want(t, "text", tt.limit.String(), tt.text)
		got, err := hybrid.ParseLimit(tt.text)
		if err != nil || got != tt.limit {
			t.Errorf("ParseLimit(%q) = %v, %v, want %v", tt.text, got, err, tt.limit)
		}
		text, err := tt.limit.MarshalText()
		if err != nil || string(text) != tt.text {
			t.Errorf("MarshalText of %v = %q, %v", tt.limit, text, err)
		}
		var back hybrid.Limit
		if err := back.UnmarshalText(text); err != nil || back != tt.limit {
			t.Errorf("UnmarshalText(%q) = %v, %v", text, back, err)
		}
	}
}

func TestParseLimitTakesOtherForms(t *testing.T) {
	for text, limit := range map[string]hybrid.Limit{
		"100/1s":              hybrid.PerSecond(100),
		"100/1000ms":          hybrid.PerSecond(100),
		"100/s burst 100":     hybrid.PerSecond(100),
		" 100/s   burst 20\n": hybrid.PerSecond(100).WithBurst(20),
		"5/60s":               hybrid.PerMinute(5),
		"5/24h":               hybrid.Per(5, day),
		"5/1d":                hybrid.Per(5, day),
		"+5/m":                hybrid.PerMinute(5),
	} {
		if got, err := hybrid.ParseLimit(text); err != nil || got != limit {
			t.Errorf("ParseLimit(%q) = %v, %v, want %v", text, got, err, limit)
		}
	}
}

func TestParseLimitErrorsAreTyped(t *testing.T) {
	before := hybrid.PerMinute(77)
	for _, text := range []string{
		"", " ", "100", "/s", "100/", "x/s", "1.5/s", "100/x", "100 / s", "100/s burst", "100/s burst x",
		"100/s burst 1.5", "100/s 20", "100/s bursts 20", "100/s burst 20 x", "0/s", "-1/s", "1/0s", "1/-1s",
		"1/0d", "1/-3d", "100/s burst 0", "100/s burst -1", "99999999999999999999/s", "1/99999999999h",
		"1/200000d", "1/xd", "1/1.5d", "100/s burst 99999999999999999999", "7/3s burst 2000000000", "NaN/s", "1e3/s",
	} {
		got, err := hybrid.ParseLimit(text)
		var config *hybrid.ConfigError
		if !errors.As(err, &config) || config.Field != "Limit" || config.Reason == "" || got != (hybrid.Limit{}) {
			t.Errorf("ParseLimit(%q) = %v, %v, want the zero Limit and a *ConfigError", text, got, err)
		}
		l := before
		if err := l.UnmarshalText([]byte(text)); err == nil || l != before {
			t.Errorf("UnmarshalText(%q) = %v and left %v", text, err, l)
		}
	}
	if _, err := hybrid.ParseLimit("100 per second"); err == nil || !strings.Contains(err.Error(), `"100 per second"`) {
		t.Errorf("the error %v does not quote the text", err)
	}
}

func TestLimitIsAComparableValue(t *testing.T) {
	l := hybrid.PerSecond(10)
	m := map[hybrid.Limit]int{l: 1}
	want(t, "found by an equal key", m[hybrid.Per(10, time.Second).WithBurst(10)], 1)
	b := l.WithBurst(3)
	want(t, "Burst of the original", l.Burst(), 10)
	want(t, "Burst", b.Burst(), 3)
	want(t, "Count", b.Count(), 10)
	want(t, "Period", b.Period(), time.Second)
	want(t, "the same limit", l == b.WithBurst(10), true)
	want(t, "another burst", l == b, false)
	want(t, "another form of the same rate", l == hybrid.PerMinute(600).WithBurst(10), false)
}

func TestLimitInJSON(t *testing.T) {
	type config struct {
		Limit hybrid.Limit            `json:"limit"`
		Paths map[string]hybrid.Limit `json:"paths"`
		By    map[hybrid.Limit]string `json:"by"`
	}
	in := config{
		Limit: hybrid.PerSecond(100).WithBurst(20),
		Paths: map[string]hybrid.Limit{"/": hybrid.Per(7, 3*time.Second)},
		By:    map[hybrid.Limit]string{hybrid.PerHour(1): "slow"},
	}
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "JSON", string(text), `{"limit":"100/s burst 20","paths":{"/":"7/3s"},"by":{"1/h":"slow"}}`)
	var out config
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	want(t, "limit", out.Limit, in.Limit)
	want(t, "limit in a map", out.Paths["/"], in.Paths["/"])
	want(t, "limit as a key", out.By[hybrid.PerHour(1)], "slow")
	var bad config
	var typed *hybrid.ConfigError
	if err := json.Unmarshal([]byte(`{"limit":"100"}`), &bad); !errors.As(err, &typed) {
		t.Errorf("error of a bad limit: %v", err)
	}
}

func FuzzParseLimit(f *testing.F) {
	for _, s := range []string{"100/s", "7/3s burst 2", "1/366d", "5/1h30m0s", "1/1.5s", "x", "1/µs", "9/0.000000001s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := hybrid.ParseLimit(text)
		var config *hybrid.ConfigError
		if err != nil {
			if !errors.As(err, &config) {
				t.Fatalf("ParseLimit(%q): error %T", text, err)
			}
			return
		}
		back, err := hybrid.ParseLimit(l.String())
		if err != nil || back != l {
			t.Fatalf("%q is %v, which reads as %v, %v", text, l, back, err)
		}
	})
}

func FuzzLimitText(f *testing.F) {
	f.Add(100, int64(time.Second), 20)
	f.Add(7, int64(3*time.Second), 7)
	f.Add(1, int64(366*day), 1)
	f.Add(1, int64(36*time.Hour), 5)
	f.Fuzz(func(t *testing.T, n int, period int64, burst int) {
		l := hybrid.Per(n, time.Duration(period)).WithBurst(burst)
		back, err := hybrid.ParseLimit(l.String())
		var config *hybrid.ConfigError
		switch {
		case err == nil && back != l:
			t.Fatalf("%v reads as %v", l, back)
		case err != nil && !errors.As(err, &config):
			t.Fatalf("%v: error %T", l, err)
		case err != nil && n > 0 && period > 0 && burst > 0 && !strings.Contains(err.Error(), "2^53"):
			t.Fatalf("%v: %v", l, err)
		}
	})
}
