package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/resilient-go/limiter/hybrid"
)

// Settings are what the page can change. Those below Load need new limiters.
type Settings struct {
	Limit int `json:"limit"` // requests per second, for all instances together
	Burst int `json:"burst"`
	Load  int `json:"load"` // requests per second, on all instances together
	// Skew is the part of the load that goes to the first instance alone; the rest
	// is even, the first included.
	Skew float64 `json:"skew"`

	Instances int     `json:"instances"`
	Share     float64 `json:"share"`   // the local share
	Horizon   int     `json:"horizon"` // of leases, in milliseconds
	Algorithm string  `json:"algorithm"`
}

// algorithms are those of the limiter, by their names.
var algorithms = func() map[string]hybrid.Algorithm {
	all := map[string]hybrid.Algorithm{}
	for _, a := range []hybrid.Algorithm{
		hybrid.TokenBucket, hybrid.LeakyBucket, hybrid.FixedWindow, hybrid.SlidingLog, hybrid.RollingWindow,
	} {
		all[a.String()] = a
	}
	return all
}()

// defaults are twice the limit, evenly on five instances.
var defaults = Settings{Limit: 1000, Burst: 1000, Load: 2000, Instances: 5, Share: 1, Horizon: 200, Algorithm: "token bucket"}

// The ranges are those of the page's controls.
const (
	mostLimit     = 20_000
	mostLoad      = 20_000
	mostInstances = 12
	leastHorizon  = 20
	mostHorizon   = 5_000
)

// with reads a JSON object with some of the settings over s.
func (s Settings) with(r io.Reader) (Settings, error) {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return s, fmt.Errorf("settings: %w", err)
	}
	return s, s.validate()
}

func (s Settings) validate() error {
	for _, v := range []struct {
		name            string
		is, least, most float64
	}{
		{"limit", float64(s.Limit), 1, mostLimit},
		{"burst", float64(s.Burst), 1, mostLimit},
		{"load", float64(s.Load), 0, mostLoad},
		{"skew", s.Skew, 0, 1},
		{"instances", float64(s.Instances), 1, mostInstances},
		{"local share", s.Share, 0.01, 1},
		{"horizon", float64(s.Horizon), leastHorizon, mostHorizon},
	} {
		if !(v.is >= v.least && v.is <= v.most) {
			return fmt.Errorf("%s: from %v to %v, not %v", v.name, v.least, v.most, v.is)
		}
	}
	a, ok := algorithms[s.Algorithm]
	switch {
	case !ok:
		return fmt.Errorf("algorithm: there is no %q", s.Algorithm)
	case a == hybrid.SlidingLog && s.Limit > 10_000:
		return fmt.Errorf("limit: a sliding log takes 10000 at most, not %d", s.Limit)
	}
	if s.Share*float64(s.Burst) < 1 {
		return fmt.Errorf("local share: %v of a burst of %d is less than one request", s.Share, s.Burst)
	}
	return nil
}

// limit has a burst only where the algorithm has one.
func (s Settings) limit() hybrid.Limit {
	if s.windowed() {
		return hybrid.PerSecond(s.Limit)
	}
	return hybrid.PerSecond(s.Limit).WithBurst(s.Burst)
}

// windowed reports whether the algorithm counts in windows.
func (s Settings) windowed() bool {
	a := algorithms[s.Algorithm]
	return a == hybrid.FixedWindow || a == hybrid.SlidingLog || a == hybrid.RollingWindow
}

// loadOn is the load on instance i, in requests per second.
func (s Settings) loadOn(i int) float64 {
	part := (1 - s.Skew) / float64(s.Instances)
	if i == 0 {
		part += s.Skew
	}
	return float64(s.Load) * part
}

// sameFleet reports whether the limiters of s can go on under o.
func (s Settings) sameFleet(o Settings) bool {
	return s.Instances == o.Instances && s.Share == o.Share && s.Horizon == o.Horizon && s.Algorithm == o.Algorithm
}

// bound is the most that one key admits in a window; lost is how often Redis may have
// lost it, which gives once more what passes at once.
func (s Settings) bound(window time.Duration, lost int) int {
	seconds := window.Seconds()
	switch algorithms[s.Algorithm] {
	case hybrid.FixedWindow: // a second has the ends of at most two windows in it
		return s.Limit * (1 + lost + int(math.Ceil(seconds)))
	case hybrid.SlidingLog:
		return s.Limit * (lost + int(math.Ceil(seconds)))
	case hybrid.RollingWindow: // it is exact over nine tenths of its period
		return s.Limit * (lost + int(math.Ceil(seconds/0.9)))
	}
	return s.Burst*(1+lost) + int(math.Ceil(float64(s.Limit)*seconds))
}
