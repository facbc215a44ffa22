package httplimit

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// pauses are the keys that the remote side wants no requests of for now.
type pauses struct {
	most int

	mu    sync.Mutex // guards until
	until map[string]time.Time
}

// left is how much of a key's pause is left.
func (p *pauses) left(key string, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	end, ok := p.until[key]
	if !ok {
		return 0
	}
	if d := end.Sub(now); d > 0 {
		return d
	}
	delete(p.until, key)
	return 0
}

// extend makes a pause, or one longer. Answers overtake each other, so none makes
// it shorter.
func (p *pauses) extend(key string, now, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until == nil {
		p.until = map[string]time.Time{}
	}
	was, ok := p.until[key]
	if ok && !until.After(was) {
		return
	}
	if !ok && len(p.until) >= p.most {
		p.makeRoom(now)
	}
	p.until[key] = until
}

// makeRoom forgets the pauses that are over, or the one that ends first. mu is
// held.
func (p *pauses) makeRoom(now time.Time) {
	first, end := "", time.Time{}
	for key, until := range p.until {
		if !until.After(now) {
			delete(p.until, key)
			continue
		}
		if end.IsZero() || until.Before(end) {
			first, end = key, until
		}
	}
	if len(p.until) >= p.most {
		delete(p.until, first)
	}
}

// pauseAsked is the pause that a response asks for. Of what is malformed nothing is
// heeded.
func pauseAsked(resp *http.Response, now time.Time) time.Duration {
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable {
		if d, ok := retryAfter(resp.Header, now); ok {
			return d // it goes before RateLimit
		}
	}
	if age, err := strconv.ParseInt(resp.Header.Get("Age"), 10, 64); err == nil && age > 0 {
		return 0 // from a cache: about somebody else's request
	}
	members, err := parseList(resp.Header.Values(fieldLimit))
	if err != nil {
		return 0
	}
	var longest time.Duration
	for _, m := range members {
		r, ok := m.number("r")
		t, timed := m.number("t")
		if m.named && ok && timed && r == 0 {
			longest = max(longest, secondsOf(float64(t)))
		}
	}
	return longest
}

// retryAfter reads Retry-After: seconds, with a fraction as some services send
// it, or an HTTP date. A date counts from the response's own Date if it has one, so
// that a clock that is wrong here does no harm.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	text := strings.Trim(h.Get("Retry-After"), " \t")
	if isDecimal(text) {
		s, _ := strconv.ParseFloat(text, 64) // of digits: too large is +Inf
		return secondsOf(s), true
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0, false
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return max(0, at.Sub(now)), true
}

// isDecimal reports whether a text is digits, maybe with a fraction.
func isDecimal(s string) bool {
	whole, part, fraction := strings.Cut(s, ".")
	digits := func(s string) bool {
		return s != "" && strings.Trim(s, "0123456789") == ""
	}
	return digits(whole) && (!fraction || digits(part))
}

// secondsOf is a number of seconds as a duration, at most the longest one.
func secondsOf(s float64) time.Duration {
	ns := math.Round(s * 1e9)
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(ns)
}
