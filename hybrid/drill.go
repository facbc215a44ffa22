package hybrid

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// drill is a degraded time that was asked for.
type drill struct {
	on atomic.Bool

	mu  sync.Mutex // guards what follows
	end *time.Timer
}

// errDrill is why an outage began that was asked for.
var errDrill = errors.New("hybrid: ForceDegraded was called")

// ForceDegraded has this instance decide by the outage policy for a time, although
// Redis is well: a fallback that is never exercised fails when it is needed. Permits
// on lease are used up first, as in an outage. It is told as [Degraded], with the
// class "drill", and [Recovered], on a Cluster for each master; an outage meanwhile
// is part of the same degraded time. Calling it again sets the time anew, and 0 ends
// it at once.
func (l *Limiter) ForceDegraded(d time.Duration) {
	l.drill.stop()
	if d <= 0 || l.closed.Load() {
		l.endDrill()
		return
	}
	l.everyLane(true, (*lane).beginDrill)
	l.drill.mu.Lock()
	l.drill.end = time.AfterFunc(d, l.endDrill)
	l.drill.mu.Unlock()
	l.moveQueues()
}

// stop stops the timer.
func (d *drill) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.end != nil {
		d.end.Stop()
		d.end = nil
	}
}

func (l *Limiter) endDrill() {
	l.everyLane(false, (*lane).endDrill)
	l.moveQueues()
}

// everyLane sets the drill on or off, for the lanes that there are and will be.
func (l *Limiter) everyLane(on bool, f func(*lane)) {
	l.lanes.mu.Lock()
	defer l.lanes.mu.Unlock()
	l.drill.on.Store(on)
	for _, a := range l.lanes.all() {
		f(a)
	}
}

func (a *lane) beginDrill() { a.begin(byDrill, time.Now(), "drill", errDrill) }

func (a *lane) endDrill() { a.over(byDrill, time.Now()) }
