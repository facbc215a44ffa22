package hybrid

import (
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

// outage is the degraded time of a lane: while there is a cause.
type outage struct {
	began atomic.Int64 // instant at which the last one did

	mu               sync.Mutex // guards what follows; events are pushed under it, so that they are in order
	causes           cause
	since            time.Time // zero while there is none
	total, told      time.Duration
	allowed, refused uint64 // counters when it began
}

// begin adds a cause.
func (a *lane) begin(why cause, at time.Time, class string, err error) {
	l, o := a.l, &a.outage
	o.mu.Lock()
	defer o.mu.Unlock()
	had := o.causes
	if o.causes |= why; had != 0 {
		return
	}
	o.since = at
	o.allowed, o.refused = a.allowed.Load(), a.refused.Load()
	o.began.Store(max(1, int64(at.Sub(l.epoch))))
	d := Degraded{At: at, Node: a.node, Class: class, Err: err}
	d.Instances, d.InstancesAssumed = l.instances()
	d.InstancesAssumed = d.InstancesAssumed && l.cfg.policy == Share
	if h := l.members.known.Load(); h != nil {
		d.InstancesAge = time.Duration(l.now() - h.at)
	}
	l.events.push(d)
}

// over takes a cause away.
func (a *lane) over(why cause, at time.Time) {
	l, o := a.l, &a.outage
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.causes&why == 0 {
		return
	}
	if o.causes &^= why; o.causes != 0 {
		return
	}
	a.cautious.Store(l.carefulFrom(l.now()))
	r := Recovered{At: at, Node: a.node, Duration: at.Sub(o.since), Allowed: a.allowed.Load() - o.allowed, Refused: a.refused.Load() - o.refused}
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
func (a *lane) breakerChanged(c breaker.Change) {
	l := a.l
	l.events.push(BreakerChanged{At: c.At, Node: a.node, From: c.From.String(), To: c.To.String(), Err: c.Err})
	switch {
	case c.From == breaker.Closed && c.To == breaker.Open:
		class := remote.ClassOf(c.Err)
		if class.Misconfigured() {
			l.reportMisconfigured(class, "", c.Err)
		}
		a.begin(byBreaker, c.At, class.String(), c.Err)
		l.moveQueues()
	case c.To == breaker.Closed:
		a.over(byBreaker, c.At)
		l.members.again()
		l.moveQueues()
	}
}
