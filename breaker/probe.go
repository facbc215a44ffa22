package breaker

import (
	"math/rand/v2"
	"time"
)

// The pace of probes: the first comes after 250 ms, then the pause doubles up
// to 800 ms, each ±20 % so that instances do not probe together.
const (
	firstProbe = 250 * time.Millisecond
	lastProbe  = 800 * time.Millisecond
	jitter     = 0.2
)

// earlyEvery is how often Config.Early is asked.
const earlyEvery = 50 * time.Millisecond

// plan sets the timer for the next probe. mu is held and none is planned.
func (b *Breaker) plan() {
	b.due = time.Now().Add(time.Duration(float64(b.pause) * (1 - jitter + 2*jitter*rand.Float64())))
	b.arm()
}

// arm sets the timer, as plan does.
func (b *Breaker) arm() {
	if b.closed {
		return
	}
	d := time.Until(b.due)
	if b.cfg.Early != nil {
		d = min(d, earlyEvery)
	}
	b.probes.Add(1)
	b.timer = time.AfterFunc(d, b.ring)
}

// ring runs on the timer's goroutine, which Close waits for.
func (b *Breaker) ring() {
	defer b.probes.Done()
	if b.isDue() {
		b.probe()
	}
}

// isDue reports whether it is time for the probe; else the timer is set again.
func (b *Breaker) isDue() bool {
	if b.cfg.Early != nil && b.cfg.Early() {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !time.Now().Before(b.due) {
		return true
	}
	b.arm()
	return false
}

// probe probes. Should the probe panic or end the goroutine, it has failed and the
// breaker goes on.
func (b *Breaker) probe() {
	defer b.deliver()
	defer b.again()
	b.begin()
	_ = b.execute(b.cfg.Probe, true) // its outcome is the change of state
}

// begin makes the breaker half-open.
func (b *Breaker) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == Open {
		b.change(HalfOpen, nil)
	}
}

// again plans the next probe if the last one changed nothing: its outcome was
// ignored, or gobreaker did not let it pass.
func (b *Breaker) again() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == HalfOpen {
		b.plan()
	}
}
