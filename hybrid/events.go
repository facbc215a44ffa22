package hybrid

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/resilient-go/limiter/local"
	"github.com/resilient-go/limiter/remote"
)

// An Event is a rare thing that an operator wants to know of: [Degraded],
// [Recovered], [BreakerChanged], [InstancesChanged], [StateLost], [Misconfigured],
// [LimitMismatch], [TableFull], [Unaccounted] or [NearLimit].
// Frequent things are counted in [Stats].
type Event interface {
	// When is the time of the event.
	When() time.Time
	attrs() (slog.Level, string, []slog.Attr)
}

// Degraded says that requests are decided by the outage policy from now on. On a
// Cluster each master has a breaker of its own, and this is about the keys of one.
type Degraded struct {
	At time.Time
	// Node is the address of the master, "" where there is only one, or where the
	// client has not found any.
	Node  string
	Class string // why, in one word: "timeout", "connection", "forbidden", …
	Err   error
	// Instances is the number of instances that the limit is divided by.
	Instances int
	// InstancesAssumed: nobody said how many instances there are.
	InstancesAssumed bool
	// InstancesAge is how long ago Redis told how many there are; 0 if it never did.
	InstancesAge time.Duration
}

// InstancesChanged says that the number of instances of this name has changed, as
// far as Redis is reached by them.
type InstancesChanged struct {
	At   time.Time
	Live int // reach Redis now
	Peak int // did lately: the limit is divided by that many in an outage
}

// StateLost says that the bucket of a key was gone at Redis although it cannot have
// been full: it was evicted, flushed, or left behind by a failover. It goes on where
// this instance last saw it. It is told once a minute at most.
type StateLost struct {
	At   time.Time
	Key  string // the name in Redis. It is not logged.
	Left int    // tokens that it goes on with
}

// When implements [Event].
func (e InstancesChanged) When() time.Time { return e.At }

func (e InstancesChanged) attrs() (slog.Level, string, []slog.Attr) {
	return slog.LevelDebug, "rate limiter instances changed", []slog.Attr{
		slog.Int("live", e.Live), slog.Int("peak", e.Peak),
	}
}

// When implements [Event].
func (e StateLost) When() time.Time { return e.At }

func (e StateLost) attrs() (slog.Level, string, []slog.Attr) {
	return slog.LevelWarn, "rate limiter state lost", []slog.Attr{slog.Int("left", e.Left)}
}

// Recovered says that Redis decides again, the master or the one that took its place.
type Recovered struct {
	At       time.Time
	Node     string        // as in the [Degraded] that it ends
	Duration time.Duration // of the degraded time
	Allowed  uint64        // requests that were admitted meanwhile by the outage policy
	Refused  uint64
}

// BreakerChanged says that the circuit breaker went from one state to another: "closed",
// "open", "half-open".
type BreakerChanged struct {
	At       time.Time
	Node     string // as in [Degraded]
	From, To string
	Err      error // what opened it
}

// Misconfigured says that Redis answers, but not to us, and that waiting will
// not help: a wrong password, a missing permission, a key that holds something
// else. It is told once a minute at most, and again after an outage.
type Misconfigured struct {
	At    time.Time
	Class string // "forbidden", "script", "protocol", "version", "badkey", "closed", "limit"
	Err   error
	// Key is the name in Redis of the one key that suffers, if it is only one, as
	// with "limit": the function of WithLimitByKey gave an invalid one. It
	// is not logged.
	Key string
}

// LimitMismatch says that this instance applies another limit than it was given,
// because an instance with a higher version of the limit, or with a smaller limit of
// the same version, asks for the same keys. It is told once a minute at most.
type LimitMismatch struct {
	At                       time.Time
	Ours, Theirs             Limit
	OurVersion, TheirVersion int64
	// Key is the name in Redis of the key where it showed. It is not logged.
	Key string
}

// NearLimit says that little of a key's bucket is left at Redis, see
// [WithNearLimit]. It is told once per key and period of the limit, by each
// instance that sees it, and it is logged at the level debug, without the key.
type NearLimit struct {
	At    time.Time
	Key   string // the name in Redis
	Limit Limit
	// Left is how many tokens the root bucket has, besides those out on lease.
	Left int
}

// When implements [Event].
func (e NearLimit) When() time.Time { return e.At }

func (e NearLimit) attrs() (slog.Level, string, []slog.Attr) {
	return slog.LevelDebug, "rate limiter near limit", []slog.Attr{
		slog.String("limit", e.Limit.String()), slog.Int("left", e.Left),
	}
}

// When implements [Event].
func (e Degraded) When() time.Time { return e.At }

// When implements [Event].
func (e Recovered) When() time.Time { return e.At }

// When implements [Event].
func (e BreakerChanged) When() time.Time { return e.At }

// When implements [Event].
func (e Misconfigured) When() time.Time { return e.At }

func (e Degraded) attrs() (slog.Level, string, []slog.Attr) {
	return slog.LevelWarn, "rate limiter degraded", about(e.Node,
		slog.String("class", e.Class), errorAttr(e.Err),
		slog.Int("instances", e.Instances), slog.Bool("instances_assumed", e.InstancesAssumed))
}

func (e Recovered) attrs() (slog.Level, string, []slog.Attr) {
	return slog.LevelInfo, "rate limiter recovered", about(e.Node,
		slog.Duration("duration", e.Duration), slog.Uint64("allowed", e.Allowed), slog.Uint64("refused", e.Refused))
}

func (e BreakerChanged) attrs() (slog.Level, string, []slog.Attr) {
	return slog.LevelDebug, "rate limiter breaker changed", about(e.Node,
		slog.String("from", e.From), slog.String("to", e.To), errorAttr(e.Err))
}

func (e Misconfigured) attrs() (slog.Level, string, []slog.Attr) {
	return slog.LevelError, "rate limiter misconfigured", []slog.Attr{
		slog.String("class", e.Class), errorAttr(e.Err),
	}
}

// When implements [Event].
func (e LimitMismatch) When() time.Time { return e.At }

func (e LimitMismatch) attrs() (slog.Level, string, []slog.Attr) {
	return slog.LevelWarn, "rate limiter limit mismatch", []slog.Attr{
		slog.String("ours", e.Ours.String()), slog.Int64("our_version", e.OurVersion),
		slog.String("theirs", e.Theirs.String()), slog.Int64("their_version", e.TheirVersion),
	}
}

// about puts the node in front, where there are several.
func about(node string, attrs ...slog.Attr) []slog.Attr {
	if node == "" {
		return attrs
	}
	return append([]slog.Attr{slog.String("node", node)}, attrs...)
}

func errorAttr(err error) slog.Attr {
	if err == nil {
		return slog.String("error", "")
	}
	return slog.String("error", err.Error())
}

// eventQueue delivers events to the user in order, on a goroutine that lives
// only while there are any.
type eventQueue struct {
	handle func(Event) // nil: nobody listens
	log    *slog.Logger

	mu      sync.Mutex // guards what follows; never held while handle runs
	waiting []Event
	running bool
	dropped uint64
	panics  uint64
	idle    chan struct{} // closed when the goroutine ends
}

// eventsWaiting is how many events may wait for a slow handler.
const eventsWaiting = 64

// push never blocks. When the queue is full, what matters less is dropped first.
func (q *eventQueue) push(e Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == eventsWaiting && !q.makeRoom(e) {
		return
	}
	q.waiting = append(q.waiting, e)
	if !q.running {
		q.running = true
		q.idle = make(chan struct{})
		go q.run(q.idle)
	}
}

// makeRoom drops one event and reports whether e may be queued. mu is held.
func (q *eventQueue) makeRoom(e Event) bool {
	q.dropped++
	if minor(e) {
		return false
	}
	for i, old := range q.waiting {
		if minor(old) {
			q.waiting = append(q.waiting[:i], q.waiting[i+1:]...)
			return true
		}
	}
	return false
}

// minor reports whether an event matters less than the beginning and the end of a
// degraded time.
func minor(e Event) bool {
	switch e.(type) {
	case BreakerChanged, NearLimit, InstancesChanged:
		return true
	default:
		return false
	}
}

func (q *eventQueue) run(idle chan struct{}) {
	defer close(idle)
	for {
		q.mu.Lock()
		if len(q.waiting) == 0 {
			q.running = false
			q.mu.Unlock()
			return
		}
		e := q.waiting[0]
		q.waiting = q.waiting[1:]
		q.mu.Unlock()
		q.deliver(e)
	}
}

func (q *eventQueue) deliver(e Event) {
	defer func() {
		if p := recover(); p != nil {
			q.mu.Lock()
			q.panics++
			q.mu.Unlock()
			q.log.Error("rate limiter: the handler of WithEvents panicked", slog.Any("panic", p))
		}
	}()
	level, text, attrs := e.attrs()
	q.log.LogAttrs(context.Background(), level, text, attrs...)
	if q.handle != nil {
		q.handle(e)
	}
}

// wait lets the events pushed so far reach the handler, at most for d: a
// handler that hangs belongs to the user.
func (q *eventQueue) wait(d time.Duration) {
	q.mu.Lock()
	idle, running := q.idle, q.running
	q.mu.Unlock()
	if !running {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-idle:
	case <-t.C:
	}
}

// A reminder keeps the report of a lasting fault from being repeated.
type reminder struct {
	mu sync.Mutex // guards what follows
	at [reminders]time.Time
}

// What a reminder tells apart: the classes of errors, and more.
const (
	badLimit = remote.Classes + iota
	mismatch
	overdraft
	stateLost
	tableFull
	reminders
)

const remindAfter = time.Minute

// due reports whether that is to be reported now.
func (r *reminder) due(class int, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last := r.at[class]; !last.IsZero() && now.Sub(last) < remindAfter {
		return false
	}
	r.at[class] = now
	return true
}

func (r *reminder) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.at[:])
}

func (l *Limiter) reportMisconfigured(class remote.Class, key string, err error) {
	now := time.Now()
	if !l.reminder.due(int(class), now) {
		return
	}
	e := Misconfigured{At: now, Class: class.String(), Err: err}
	if class.KeyOnly() {
		e.Key = key
	}
	l.events.push(e)
}

// reportLimit reports an invalid limit of the user's function.
func (l *Limiter) reportLimit(e *entry, err error) {
	if now := time.Now(); l.reminder.due(badLimit, now) {
		l.events.push(Misconfigured{At: now, Class: "limit", Err: err, Key: e.key})
	}
}

// reportLost reports that the bucket of a key was lost.
func (l *Limiter) reportLost(e *entry, level remote.Level) {
	l.counts.stateLost.Add(1)
	if now := time.Now(); l.reminder.due(stateLost, now) {
		l.events.push(StateLost{At: now, Key: e.key, Left: int(max(0, level.Tokens/local.Unit))})
	}
}

// reportMismatch reports that another limit is in force for a key.
func (l *Limiter) reportMismatch(e *entry, theirs *terms) {
	if now := time.Now(); l.reminder.due(mismatch, now) {
		l.events.push(LimitMismatch{
			At: now, Ours: e.mine.limit, Theirs: theirs.limit,
			OurVersion: e.mine.version, TheirVersion: theirs.version, Key: e.key,
		})
	}
}

// watchLevel reports that a key is near its limit. mu is held.
func (l *Limiter) watchLevel(e *entry, level remote.Level, now int64) {
	t := e.force()
	gone := 1 - float64(level.Tokens)/float64(t.burst*local.Unit)
	if gone < l.cfg.near || now < e.nearUntil {
		return
	}
	e.nearUntil = now + int64(t.limit.period)
	l.counts.near.Add(1)
	if l.events.handle != nil {
		l.events.push(NearLimit{At: time.Now(), Key: e.key, Limit: t.limit, Left: int(max(0, level.Tokens/local.Unit))})
	}
}
