package httplimit

import (
	"net/http"
	"net/netip"
	"time"
)

// WithRandom replaces the jitter of the back-off.
func WithRandom(f func(n int64) int64) TransportOption {
	return func(c *transportConfig) { c.random = f }
}

// Paused is how many keys a transport keeps a pause of.
func (t *Transport) Paused() int {
	t.pauses.mu.Lock()
	defer t.pauses.mu.Unlock()
	return len(t.pauses.until)
}

// PauseAsked is what a response asks for.
func PauseAsked(resp *http.Response, now time.Time) time.Duration { return pauseAsked(resp, now) }

// ParseAddr reads an address as in a header.
func ParseAddr(s string) netip.Addr { return parseAddr(s) }

// FromRight lists what a header tells, the nearest first.
func FromRight(h http.Header, header ClientHeader) []string {
	var all []string
	for v := range fromRight(h, header) {
		all = append(all, v)
	}
	return all
}

// Joined makes a key of parts.
func Joined(parts []string) string { return joined(parts) }

// Quote writes a string of a structured field.
func Quote(s string) string { return quote(s) }

// ListItem is an item that ParseList read.
type ListItem struct {
	Name   string
	Named  bool
	Params map[string]string
	Text   string
}

// ParseList reads a list of a structured field.
func ParseList(lines ...string) ([]ListItem, error) {
	members, err := parseList(lines)
	var items []ListItem
	for _, m := range members {
		items = append(items, ListItem{m.name, m.named, m.params, m.text})
	}
	return items, err
}
