package sim

import (
	"log/slog"
	"math"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/inside"
	"github.com/resilient-go/limiter/remote"
)

// An Instance is one process with one limiter.
type Instance struct {
	// Limiter may be used for what does not wait: SetLimit, Stats.
	Limiter *hybrid.Limiter
	// Drift is how much faster its clock runs than that of the world: 0.1 is ten per
	// cent. It may be set before the first request.
	Drift float64

	w       *World
	holder  string
	born    int64
	timeout time.Duration
	gate    gate
	pending []*pending

	ran time.Duration // when the script ran whose answer came last

	dead    bool
	cut     bool  // the network does not reach it
	deaf    bool  // what it sends arrives, but no answer comes back
	resumes int64 // it stands still until then
}

// A pending request waits for its decision.
type pending struct {
	request inside.Request
	done    func(inside.Decision)
	late    *event // when a request that does not queue is given up
}

// Start starts an instance. Its clock begins at 0. The remote time-out is what the
// limiter is given with hybrid.WithRemoteTimeout, 0 for the default.
func (w *World) Start(limit hybrid.Limit, timeout time.Duration, options ...hybrid.Option) (*Instance, error) {
	if timeout == 0 {
		timeout = hybrid.DefaultRemoteTimeout
	}
	i := &Instance{w: w, holder: w.holder(), born: w.now, timeout: timeout}
	i.gate.i = i
	all := append([]hybrid.Option{
		hybrid.WithLogger(slog.New(slog.DiscardHandler)),
		hybrid.WithMaxKeys(64),
		hybrid.WithRemoteTimeout(timeout),
	}, options...)
	all = append(all, inside.Option(i).(hybrid.Option))
	var err error
	i.Limiter, err = hybrid.New(nil, limit, all...)
	return i, err
}

// Ask sends a request to the instance, patient as one of Wait or not. done is
// called with the decision, at once or later; not if the instance dies. A request
// to an instance that stands still waits for it.
func (i *Instance) Ask(key string, n int, patient bool, done func(inside.Decision)) {
	if i.dead || i.resumes > i.w.now { // else there is no need of a closure
		i.standing(func() { i.Ask(key, n, patient, done) })
		return
	}
	d, r := inside.Ask(i.Limiter, key, n, patient)
	if r == nil {
		done(d)
	} else {
		p := &pending{request: r, done: done}
		if !patient {
			p.late = i.after(i.timeout, func() { i.finish(p, p.request.Leave(false)) })
		}
		i.pending = append(i.pending, p)
	}
	i.settle()
}

// finish ends a pending request.
func (i *Instance) finish(p *pending, d inside.Decision) {
	for j, q := range i.pending {
		if q == p {
			i.pending = append(i.pending[:j], i.pending[j+1:]...)
			break
		}
	}
	p.done(d)
}

// settle hands out the decisions that have been made. Anything that happens in the
// limiter ends with it.
func (i *Instance) settle() {
	for again := true; again; {
		again = false
		for _, p := range i.pending {
			if d, ok := p.request.Decided(); ok {
				i.w.cancel(p.late)
				i.finish(p, d)
				again = true
				break
			}
		}
	}
}

// Ran is when the script ran that decided what is handed out now, if Redis did.
func (i *Instance) Ran() time.Duration { return i.ran }

// SetLimit gives the instance another limit, with a version unless that is
// negative, and then has done called. An instance that stands still does it later.
func (i *Instance) SetLimit(limit hybrid.Limit, version int64, done func(error)) {
	i.run(func() {
		var err error
		if version < 0 {
			err = i.Limiter.SetLimit(limit)
		} else {
			err = i.Limiter.SetLimitVersion(limit, version)
		}
		done(err)
	})
}

// Waiting is how many requests wait for a decision.
func (i *Instance) Waiting() int { return len(i.pending) }

// Kill ends the instance like kill -9.
func (i *Instance) Kill() { i.dead = true }

// Cut takes the instance off the network, or puts it back.
func (i *Instance) Cut(cut bool) { i.cut = cut }

// Deafen has all answers to the instance be lost from now on, or no longer.
func (i *Instance) Deafen(deaf bool) { i.deaf = deaf }

// Pause stops the instance for that long, like SIGSTOP: its clock goes on.
func (i *Instance) Pause(d time.Duration) { i.resumes = max(i.resumes, i.w.now+int64(d)) }

// standing reports whether the instance does not run now, and has f called when it
// goes on.
func (i *Instance) standing(f func()) bool {
	if i.dead {
		return true
	}
	if i.resumes <= i.w.now {
		return false
	}
	i.w.plan(i.resumes, f)
	return true
}

// run has f happen in the instance, now or when it goes on.
func (i *Instance) run(f func()) {
	if i.standing(func() { i.run(f) }) {
		return
	}
	f()
	i.settle()
}

// after has f happen in the instance when that time has passed on its clock, and
// no earlier.
func (i *Instance) after(d time.Duration, f func()) *event {
	if i.Drift != 0 {
		d = time.Duration(math.Ceil(float64(d)/(1+i.Drift))) + 1
	}
	var e *event
	e = i.w.plan(i.w.now+max(0, int64(d)), func() {
		if i.resumes > i.w.now { // the same event, so that it can still be called off
			i.w.replan(e, i.resumes)
			return
		}
		i.run(f)
	})
	return e
}

// Now implements [inside.World].
func (i *Instance) Now() int64 {
	elapsed := i.w.now - i.born
	return elapsed + int64(float64(elapsed)*i.Drift)
}

// Float64 implements [inside.World].
func (i *Instance) Float64() float64 { return i.w.Rand.Float64() }

// AfterFunc implements [inside.World].
func (i *Instance) AfterFunc(d time.Duration, f func()) inside.Timer {
	return &timer{i: i, f: f, event: i.after(d, f)}
}

type timer struct {
	i     *Instance
	f     func()
	event *event
}

func (t *timer) Stop() bool { return t.i.w.cancel(t.event) }

func (t *timer) Reset(d time.Duration) bool {
	active := t.Stop()
	t.event = t.i.after(d, t.f)
	return active
}

// Closed implements [inside.World].
func (i *Instance) Closed() bool { return i.gate.closed() }

// Acquire implements [inside.World]: the answer counts if it comes within the
// time-out.
func (i *Instance) Acquire(m *remote.Message, done func(remote.Answer, error)) error {
	var p *Post
	sent := i.w.now
	finish := func(a remote.Answer, err error) bool {
		if p.Over {
			return false
		}
		p.Over = true
		done(a, err)
		i.gate.heard(sent, err)
		return true
	}
	giveUp := i.after(i.timeout, func() { _ = finish(remote.Answer{}, errTimeout) })
	p = i.w.post(i, m, func(p *Post, a remote.Answer, err error) {
		i.run(func() {
			i.w.cancel(giveUp)
			i.ran = p.Ran
			if !finish(a, err) {
				p.Lost = "too late"
			}
			if i.w.Landed != nil {
				i.w.Landed(p, a, err)
			}
		})
	})
	return nil
}
