package hybrid

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/resilient-go/limiter/breaker"
	"github.com/resilient-go/limiter/remote"
)

// Why the outage policy decides.
type cause uint8

const (
	byBreaker cause = 1 << iota
	byDrill
)

// outage is the degraded time of a limiter: while there is a cause.
type outage struct {
	began atomic.Int64 // instant at which the last one did
	drill atomic.Bool

	mu               sync.Mutex // guards what follows; events are pushed under it, so that they are in order
	causes           cause
	since            time.Time // zero while there is none
	total, told      time.Duration
	allowed, refused uint64 // counters when it began
	end              *time.Timer
}

// begin adds a cause.
func (o *outage) begin(l *Limiter, why cause, at time.Time, class string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	had := o.causes
	if o.causes |= why; had != 0 {
		return
	}
	o.since = at
	o.allowed, o.refused = l.counts.degraded()
	o.began.Store(max(1, int64(at.Sub(l.epoch))))
	d := Degraded{At: at, Class: class, Err: err}
	d.Instances, d.InstancesAssumed = l.instances()
	d.InstancesAssumed = d.InstancesAssumed && l.cfg.policy == Share
	if h := l.members.known.Load(); h != nil {
		d.InstancesAge = time.Duration(l.now() - h.at)
	}
	l.events.push(d)
}

// over takes a cause away.
func (o *outage) over(l *Limiter, why cause, at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.causes&why == 0 {
		return
	}
	if o.causes &^= why; o.causes != 0 {
		return
	}
	if n, _ := l.instances(); l.cfg.policy == Share && n > 1 {
		l.cautious.Store(l.now() + l.cautiousFor())
	}
	allowed, refused := l.counts.degraded()
	r := Recovered{At: at, Duration: at.Sub(o.since), Allowed: allowed - o.allowed, Refused: refused - o.refused}
	o.total += r.Duration
	o.since = time.Time{}
	l.reminder.clear()
	l.events.push(r)
}

func (o *outage) state() (degraded bool, total time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	degraded, total = !o.since.IsZero(), o.total
	if degraded {
		total += time.Since(o.since)
	}
	o.told = max(o.told, total) // the end of an outage is known after the fact
	return degraded, o.told
}

// breakerChanged turns a change of the breaker into events. The breaker calls
// it in order and under no lock.
func (l *Limiter) breakerChanged(c breaker.Change) {
	l.events.push(BreakerChanged{At: c.At, From: c.From.String(), To: c.To.String(), Err: c.Err})
	switch {
	case c.From == breaker.Closed && c.To == breaker.Open:
		class := remote.ClassOf(c.Err)
		if class.Misconfigured() {
			l.reportMisconfigured(class, "", c.Err)
		}
		l.outage.begin(l, byBreaker, c.At, class.String(), c.Err)
		l.moveQueues()
	case c.To == breaker.Closed:
		l.outage.over(l, byBreaker, c.At)
		l.members.again()
		l.moveQueues()
	}
}

// errDrill is why an outage began that was asked for.
var errDrill = errors.New("hybrid: ForceDegraded was called")

// ForceDegraded has this instance decide by the outage policy for a time, although
// Redis is well: a fallback that is never exercised fails when it is needed. Permits
// on lease are used up first, as in an outage. It is told as [Degraded], with the
// class "drill", and [Recovered]; an outage meanwhile is part of the same degraded
// time. Calling it again sets the time anew, and 0 ends it at once.
func (l *Limiter) ForceDegraded(d time.Duration) {
	o := &l.outage
	o.mu.Lock()
	if o.end != nil {
		o.end.Stop()
		o.end = nil
	}
	o.mu.Unlock()
	if d <= 0 || l.closed.Load() {
		l.endDrill()
		return
	}
	o.drill.Store(true)
	o.begin(l, byDrill, time.Now(), "drill", errDrill)
	o.mu.Lock()
	o.end = time.AfterFunc(d, l.endDrill)
	o.mu.Unlock()
	l.moveQueues()
}

func (l *Limiter) endDrill() {
	l.outage.drill.Store(false)
	l.outage.over(l, byDrill, time.Now())
	l.moveQueues()
}
