package hybrid

import (
	"time"

	"github.com/resilient-go/limiter/local"
)

// A watch notices that the machine was suspended. The monotonic clock, by which
// leases end, may have stood still meanwhile, while at Redis they ended. It looks
// whenever idle leases are looked for: every half horizon while there are any.
type watch struct {
	wall  func() time.Time
	ahead time.Duration // how far the wall clock was ahead of the other, at the last look
}

// suspended is how far the clocks must have come apart since the last look.
const suspended = time.Second

// slept reports whether the machine was suspended since the last look, or its wall
// clock was set. The sweeper alone calls it.
func (w *watch) slept(epoch time.Time) bool {
	ahead := w.wall().Round(0).Sub(epoch.Round(0)) - time.Since(epoch)
	apart := (ahead - w.ahead).Abs()
	w.ahead = ahead
	return apart > suspended
}

// wakeUp drops all leases after a suspend: they may have ended. Nothing is given
// back, since nobody knows what is still held.
func (l *Limiter) wakeUp() {
	l.keys.All(func(e *entry) {
		e.mu.Lock()
		defer e.mu.Unlock()
		l.drop(e, l.now())
		if e.flight != nil {
			e.flight.stale = true
		}
	})
}

// drop forgets a lease. mu is held.
func (l *Limiter) drop(e *entry, now int64) {
	if e.lease.Idle() {
		return
	}
	held := l.returning(e, now).Returned / local.Unit
	l.counts.expired.Add(uint64(held))
}
