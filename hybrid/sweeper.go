package hybrid

import (
	"sync"

	"github.com/resilient-go/limiter/internal/inside"
)

// A sweeper gives back leases that lie idle: those of keys that nobody asked for
// during half a horizon. It runs while there are leases.
type sweeper struct {
	mu      sync.Mutex // guards what follows
	timer   inside.Timer
	running bool
	again   bool // a lease was granted during a round
	stopped bool
	work    sync.WaitGroup
}

// start sees to it that the sweeper runs.
func (s *sweeper) start(l *Limiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.again = true
	if s.running || s.stopped {
		return
	}
	s.running = true
	s.timer = l.afterFunc(l.cfg.horizon/2, func() { s.sweep(l) })
}

// stop ends the sweeper and waits for a round under way.
func (s *sweeper) stop() {
	s.mu.Lock()
	s.stopped = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	s.work.Wait()
}

// sweep makes one round over the keys.
func (s *sweeper) sweep(l *Limiter) {
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return
	}
	s.work.Add(1)
	s.again = false
	s.mu.Unlock()
	defer s.work.Done()

	if l.cfg.world == nil && l.watch.slept(l.epoch) {
		l.wakeUp()
	}
	held := false
	l.keys.All(func(e *entry) {
		if e.lease.Idle() {
			return
		}
		held = true
		l.returnIdle(e)
	})

	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = (held || s.again) && !s.stopped
	if s.running {
		s.timer.Reset(l.cfg.horizon / 2)
	}
}

// returnIdle gives a lease back if its key was not asked for lately. A key
// whose horizon is stretched may rest in proportion. In an outage it is kept:
// it was paid for.
func (l *Limiter) returnIdle(e *entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := l.now()
	if asked := e.lease.Calls() + e.turned(); asked != e.seen {
		e.seen, e.active = asked, now
	}
	rest := e.demand.Horizon(l.cfg.horizon, longestHorizon, callsPerLump) / 2
	switch {
	case e.flight != nil || e.dead || e.queued > 0 || now-e.active < int64(rest):
	case e.lease.Ended(now):
		l.returning(e, now) // it has ended: nothing to send
	case l.up(e):
		l.send(e, &flight{msg: l.returning(e, now), sent: now})
	}
}
