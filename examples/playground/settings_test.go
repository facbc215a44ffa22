package main

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestSettingsAreRead(t *testing.T) {
	for name, c := range map[string]struct {
		text, wrong string
		want        Settings
	}{
		"one":           {`{"load": 500}`, "", Settings{1000, 1000, 500, 0, 5, 1, 200, "token bucket"}},
		"all":           {`{"limit":1,"burst":2,"load":0,"skew":1,"instances":12,"share":0.5,"horizon":20}`, "", Settings{1, 2, 0, 1, 12, 0.5, 20, "token bucket"}},
		"none":          {`{}`, "", defaults},
		"unknown":       {`{"speed": 1}`, `unknown field "speed"`, Settings{}},
		"no JSON":       {`load=1`, "settings: ", Settings{}},
		"a text":        {`{"load": "much"}`, "settings: ", Settings{}},
		"limit":         {`{"limit": 0}`, "limit: from 1 to 20000, not 0", Settings{}},
		"burst":         {`{"burst": 20001}`, "burst: from 1 to 20000", Settings{}},
		"load":          {`{"load": -1}`, "load: from 0 to 20000", Settings{}},
		"skew":          {`{"skew": 1.1}`, "skew: from 0 to 1", Settings{}},
		"instances":     {`{"instances": 13}`, "instances: from 1 to 12", Settings{}},
		"share":         {`{"share": 0}`, "local share: from 0.01 to 1", Settings{}},
		"horizon":       {`{"horizon": 10}`, "horizon: from 20 to 5000", Settings{}},
		"algorithm":     {`{"algorithm": "dice"}`, `algorithm: there is no "dice"`, Settings{}},
		"long log":      {`{"algorithm": "sliding log", "limit": 10001}`, "a sliding log takes 10000 at most", Settings{}},
		"share too low": {`{"burst": 10, "share": 0.05}`, "less than one request", Settings{}},
	} {
		got, err := defaults.with(strings.NewReader(c.text))
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: %v, want %q", name, err, c.wrong)
			}
			continue
		}
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
	}
}

func TestLoadIsSpread(t *testing.T) {
	for _, c := range []struct {
		skew        float64
		first, rest float64
	}{{0, 400, 400}, {0.5, 1200, 200}, {1, 2000, 0}} {
		s := defaults
		s.Skew = c.skew
		for i := range s.Instances {
			want := c.rest
			if i == 0 {
				want = c.first
			}
			if got := s.loadOn(i); math.Abs(got-want) > 1e-9 {
				t.Errorf("skew %v: %v on instance %d, want %v", c.skew, got, i+1, want)
			}
		}
	}
}

func TestBoundIsThatOfTheAlgorithm(t *testing.T) {
	for _, c := range []struct {
		algorithm string
		window    time.Duration
		lost      int
		want      int
	}{
		{"token bucket", time.Second, 0, 19},
		{"token bucket", 100 * time.Millisecond, 0, 6},
		{"leaky bucket", 10 * time.Second, 2, 162},
		{"fixed window", time.Second, 0, 30},
		{"fixed window", 10 * time.Second, 0, 165},
		{"sliding log", 100 * time.Millisecond, 0, 15},
		{"sliding log", 10 * time.Second, 1, 165},
		{"rolling window", time.Second, 0, 30},
		{"rolling window", 100 * time.Millisecond, 0, 15},
	} {
		s := Settings{Limit: 15, Burst: 4, Algorithm: c.algorithm}
		if got := s.bound(c.window, c.lost); got != c.want {
			t.Errorf("%s, %v, %d lost: %d, want %d", c.algorithm, c.window, c.lost, got, c.want)
		}
	}
}

func TestChangesAreNamed(t *testing.T) {
	s := defaults
	s.Load, s.Horizon = 10, 100
	if got, want := changes(defaults, s), "load 10/s, was 2000; horizon 100 ms, was 200"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
