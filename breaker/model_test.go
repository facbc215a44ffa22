package breaker_test

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/resilient-go/limiter/breaker"
)

const (
	modelSlow     = 30 * time.Millisecond
	modelPatience = 90 * time.Millisecond
)

// A model says what a breaker should do, one outcome after the other. It keeps
// all outcomes since the breaker closed and looks through them each time.
type model struct {
	mu    sync.Mutex
	state breaker.State
	era   int
	log   []logged
	since time.Time // when it closed
	due   [2]time.Time
	pause time.Duration
	wrong string
}

type logged struct {
	verdict    breaker.Verdict
	begun, end time.Time
}

// begin is the era in which a call begins.
func (m *model) begin() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.era
}

// end takes in the outcome of a call that began at that time in that era.
func (m *model) end(v breaker.Verdict, begun time.Time, era int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v == breaker.Healthy && time.Since(begun) > modelSlow {
		v = breaker.Failed
	}
	if era != m.era || v == breaker.Ignored {
		return
	}
	m.log = append(m.log, logged{v, begun, time.Now()})
	if v != breaker.Healthy && m.trips() {
		m.pause = 250 * time.Millisecond
		m.opens()
	}
}

func (m *model) trips() bool {
	var things []logged // what happened: calls that hung at the same time are one
	for i, o := range m.log {
		if i > 0 && o.verdict == breaker.Hung && m.log[i-1].verdict == breaker.Hung && o.begun.Before(m.log[i-1].end) {
			continue
		}
		things = append(things, o)
	}
	last := slices.Clone(things[max(0, len(things)-20):])
	slices.Reverse(last)
	inRow := slices.IndexFunc(last, func(o logged) bool { return o.verdict == breaker.Healthy })
	failed := 0
	for _, o := range last {
		if o.verdict != breaker.Healthy {
			failed++
		}
	}
	// The hung ones at the end, and since when they are all there is.
	first, heard := len(m.log), m.since
	for first > 0 && m.log[first-1].verdict == breaker.Hung {
		first--
	}
	if first > 0 {
		heard = m.log[first-1].end
	}
	hung := len(m.log) - first
	if hung > 0 && m.log[first].begun.After(heard) {
		heard = m.log[first].begun
	}
	return last[0].verdict == breaker.Fatal || failed >= 10 ||
		inRow >= 5 || inRow < 0 && len(last) >= 5 ||
		hung >= 2 && time.Since(heard) >= modelPatience
}

func (m *model) opens() {
	m.state = breaker.Open
	m.era++
	m.plan()
}

func (m *model) plan() {
	now := time.Now()
	m.due = [2]time.Time{now.Add(m.pause * 8 / 10), now.Add(m.pause * 12 / 10)}
}

// probe takes in that a probe begins, and its outcome when it has one.
func (m *model) probe() {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if m.state == breaker.Closed || now.Before(m.due[0]) || now.After(m.due[1]) {
		m.wrong = "a probe came when none was due"
	}
	if m.state == breaker.Open {
		m.state = breaker.HalfOpen
		m.era++
	}
}

func (m *model) probed(v breaker.Verdict, begun time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case v == breaker.Ignored:
		m.plan()
	case v == breaker.Healthy && time.Since(begun) <= modelSlow:
		m.state, m.log, m.since = breaker.Closed, nil, time.Now()
		m.era++
	default:
		m.pause = min(2*m.pause, 800*time.Millisecond)
		m.opens()
	}
}

// fail notes that the breaker did something that it should not.
func (m *model) fail(why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wrong = why
}

// differs says in what b differs from the model, if in anything.
func (m *model) differs(b *breaker.Breaker) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if got := b.State(); m.wrong == "" && (got != m.state || b.Closed() != (got == breaker.Closed)) {
		return fmt.Sprintf("the breaker is %v, want %v", got, m.state)
	}
	return m.wrong
}
