package main

import (
	"sync"
	"time"

	"github.com/resilient-go/limiter/hybrid"
)

// A Frame is what happened in a tenth of a second.
type Frame struct {
	At      float64 `json:"t"`       // its end, in seconds since the start
	Limit   float64 `json:"limit"`   // requests in a tenth of a second
	Allowed []int   `json:"allowed"` // by instance
	Refused []int   `json:"refused"`
	// Admitted and Denied are the decisions by who made them.
	Admitted map[string]int `json:"admittedBy"`
	Denied   map[string]int `json:"refusedBy"`
	Calls    []int          `json:"calls"` // to Redis, by instance

	Breakers []string `json:"breakers"` // by instance: closed, open, half-open
	Degraded []bool   `json:"degraded"`
	Cut      []bool   `json:"cut"`
	Worst    []Worst  `json:"worst"`
}

// Worst compares the window in which most was admitted with the bound.
type Worst struct {
	Window float64 `json:"window"` // seconds
	Paid   int     `json:"paid"`   // from leases and by Redis: this is what is bounded
	All    int     `json:"all"`    // with what the outage policy admits on top
	Bound  int     `json:"bound"`
}

// A meter counts decisions.
type meter struct {
	mu        sync.Mutex // guards what follows
	frame     Frame
	paid, all []call // since the last look

	// Only the goroutine that looks uses these.
	paidWindows, allWindows Windows
}

func newMeter(instances int) *meter {
	m := &meter{}
	m.frame = emptyFrame(instances)
	m.paidWindows.Reset(0)
	m.allWindows.Reset(0)
	return m
}

func emptyFrame(instances int) Frame {
	return Frame{
		Allowed: make([]int, instances), Refused: make([]int, instances),
		Admitted: map[string]int{}, Denied: map[string]int{},
	}
}

// note counts a decision.
func (m *meter) note(i int, c call, res hybrid.Result) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !res.Allowed {
		m.frame.Refused[i]++
		m.frame.Denied[res.Source.String()]++
		return
	}
	m.frame.Allowed[i]++
	m.frame.Admitted[res.Source.String()]++
	m.all = append(m.all, c)
	if res.Source != hybrid.SourceDegraded {
		m.paid = append(m.paid, c)
	}
}

// look measures the windows that end now.
func (m *meter) look(now time.Duration) {
	m.mu.Lock()
	paid, all := m.paid, m.all
	m.paid, m.all = nil, nil
	m.mu.Unlock()
	m.paidWindows.Add(paid)
	m.allWindows.Add(all)
	m.paidWindows.Look(now)
	m.allWindows.Look(now)
}

// take returns what was counted since it was called last, and begins anew for a
// number of instances.
func (m *meter) take(instances int) Frame {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.frame
	m.frame = emptyFrame(instances)
	return f
}

// worst compares the windows with the bound.
func (m *meter) worst(s Settings, lost int) []Worst {
	paid, all := m.paidWindows.Worst(), m.allWindows.Worst()
	out := make([]Worst, len(lengths))
	for i, length := range lengths {
		out[i] = Worst{Window: length.Seconds(), Paid: paid[i], All: all[i], Bound: s.bound(length, lost)}
	}
	return out
}

// forget begins the windows anew at a time.
func (m *meter) forget(at time.Duration) {
	m.paidWindows.Reset(at)
	m.allWindows.Reset(at)
}
