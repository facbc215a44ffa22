// Package sim runs whole fleets of limiters on a clock, a network and a Redis that
// are made up. The limiters are those of package hybrid and the scripts those of
// package lua; only time, transport, chance and the breaker's timing come from here.
// One seed gives one course of events, to the last decision.
//
// It is a discrete-event simulation: time jumps from one event to the next, and
// everything happens on the goroutine that calls Run.
package sim

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/resilient-go/limiter/internal/luahost"
	"github.com/resilient-go/limiter/remote"
)

// A World is the time, the Redis and the network that the instances of a fleet
// share. It is not for concurrent use.
type World struct {
	// Redis is the server that the instances talk to.
	Redis *luahost.Host
	// Rand is the chance of the world: what a test draws from it too is played back
	// with the seed.
	Rand *rand.Rand
	// Network is how messages travel from now on.
	Network Network
	// What a test may watch: each message that is sent, each script that has run, each message or answer that
	// was lost, and each that has landed at its instance, with the outcome there.
	Posted   func(*Post)
	Scripted func(*Post)
	Losing   func(*Post)
	Landed   func(*Post, remote.Answer, error)
	// Holding says how much longer than others a message is under way.
	Holding func(*Post) time.Duration
	// MostEvents, if not 0, ends all: what goes round in circles fails rather than
	// hangs. Ended reports it.
	MostEvents uint64

	now       int64 // nanoseconds since the world began
	step      time.Duration
	events    events
	happened  uint64
	order     uint64
	instances uint64
	calls     uint64
}

// epoch is the date on the clock of Redis when a world begins.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// New returns a world whose messages take no time.
func New(seed uint64) *World {
	w := &World{Rand: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)), Network: Network{Up: true}}
	w.Redis = luahost.New(func() int64 {
		return epoch.UnixMicro() + (w.now+int64(w.step))/1000
	})
	return w
}

// Now is the time since the world began.
func (w *World) Now() time.Duration { return time.Duration(w.now) }

// StepRedis puts the clock of Redis forward or back.
func (w *World) StepRedis(d time.Duration) { w.step += d }

// Calls is how many messages were sent so far.
func (w *World) Calls() uint64 { return w.calls }

// At has f run at a time, after what was planned for the same time before. A time
// that has passed is now.
func (w *World) At(t time.Duration, f func()) { w.plan(int64(t), f) }

func (w *World) plan(at int64, f func()) *event {
	e := &event{f: f}
	w.replan(e, at)
	return e
}

// replan puts an event that has happened back among those to come.
func (w *World) replan(e *event, at int64) {
	w.order++
	e.at, e.order = max(at, w.now), w.order
	heap.Push(&w.events, e)
}

// Run lets time pass until then, the events of that instant included.
func (w *World) Run(until time.Duration) {
	for len(w.events) > 0 && w.events[0].at <= int64(until) && !w.Ended() {
		w.happened++
		e := heap.Pop(&w.events).(*event)
		w.now = e.at
		e.f()
	}
	w.now = max(w.now, int64(until))
}

// Ended reports whether there were as many events as there may be.
func (w *World) Ended() bool { return w.MostEvents > 0 && w.happened >= w.MostEvents }

// holder gives each instance an id of its own.
func (w *World) holder() string {
	w.instances++
	return fmt.Sprintf("holder%010d", w.instances)
}

// An event is something to come. It leaves the heap when it happens or is called
// off.
type event struct {
	at    int64
	order uint64
	f     func()
	index int // in the heap; -1 outside
}

type events []*event

func (h events) Len() int { return len(h) }

func (h events) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].order < h[j].order
}

func (h events) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements [heap.Interface].
func (h *events) Push(x any) {
	e := x.(*event)
	e.index = len(*h)
	*h = append(*h, e)
}

// Pop implements [heap.Interface].
func (h *events) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	e.index = -1
	return e
}

// cancel calls an event off and reports whether it was still to come.
func (w *World) cancel(e *event) bool {
	if e == nil || e.index < 0 {
		return false
	}
	heap.Remove(&w.events, e.index)
	return true
}
