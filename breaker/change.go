package breaker

import (
	"time"

	"github.com/sony/gobreaker/v2"
)

// A Change is one transition.
type Change struct {
	From, To State
	At       time.Time
	// Err is the outcome that caused it when To is Open, else nil.
	Err error
}

// stateChanged runs under gobreaker's lock: it only notes. gobreaker becomes
// half-open when anybody asks it anything, late outcomes among them; for us
// that is when the probe begins.
func (b *Breaker) stateChanged(_ string, _, to gobreaker.State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch to {
	case gobreaker.StateOpen:
		if b.state == Closed {
			b.pause = firstProbe
		} else {
			b.pause = min(2*b.pause, lastProbe)
		}
		b.change(Open, b.recent.cause)
		b.plan()
	case gobreaker.StateClosed:
		b.recent = recent{}
		b.change(Closed, nil)
	case gobreaker.StateHalfOpen:
	}
}

// change notes a transition. mu is held.
func (b *Breaker) change(to State, err error) {
	b.changes = append(b.changes, Change{From: b.state, To: to, At: time.Now(), Err: err})
	b.state = to
	b.era++
	b.shut.Store(to != Closed)
}

// deliver hands out the noted changes. One goroutine at a time does, so that
// they arrive in order; what is noted meanwhile is delivered by the same one.
func (b *Breaker) deliver() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.delivering {
		return
	}
	b.delivering = true
	defer func() { b.delivering = false }()
	for len(b.changes) > 0 {
		c := b.changes[0]
		b.changes = b.changes[1:]
		b.notify(c)
	}
}

// notify lets go of mu meanwhile.
func (b *Breaker) notify(c Change) {
	b.mu.Unlock()
	defer b.mu.Lock()
	if b.cfg.Notify != nil {
		b.cfg.Notify(c)
	}
}
