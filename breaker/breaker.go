// Package breaker decides whether Redis is asked at all.
//
// It is sony/gobreaker behind the names of this project, with three things
// added: a slow answer counts as a failure, an open breaker is probed by a
// timer of its own instead of by the next caller, and changes of state are
// delivered in order and outside every lock.
//
// While the breaker is not closed, [Breaker.Do] refuses at once with [ErrOpen]
// and costs one atomic read. Only the probe may call meanwhile.
package breaker

import (
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
)

// ErrOpen is what Do answers while the breaker is open or half-open.
var ErrOpen = errors.New("breaker: open")

// A State is what the breaker does with calls.
type State uint8

// Closed lets calls pass, Open refuses them, HalfOpen waits for a probe.
const (
	Closed State = iota
	Open
	HalfOpen
)

func (s State) String() string {
	switch s {
	case Closed:
		return "closed"
	case Open:
		return "open"
	default:
		return "half-open"
	}
}

// A Verdict is what the outcome of one call says about Redis.
type Verdict uint8

const (
	// Healthy outcomes are answers, denials among them.
	Healthy Verdict = iota
	// Ignored outcomes say nothing about Redis: the caller gave up.
	Ignored
	// Failed outcomes open the breaker at five in a row, or ten of the last twenty.
	Failed
	// Hung outcomes are failures without an answer. Two of them open the breaker
	// when nothing was heard for Config.Patience.
	Hung
	// Fatal outcomes, such as a wrong password, open it at once.
	Fatal
)

// A Change is one transition.
type Change struct {
	From, To State
	At       time.Time
	// Err is the outcome that caused it, nil when the breaker closed.
	Err error
}

// Config is what New needs. Judge and Probe are required.
type Config struct {
	// Judge gives the verdict on the outcome of a call, nil included.
	Judge func(error) Verdict
	// Probe makes one real call. It must return within a bound of its own.
	Probe func() error
	// SlowAfter makes a healthy call that took longer count as Failed; 0 means never.
	SlowAfter time.Duration
	// Patience is how long calls may hang in a row; 0 means that two suffice.
	Patience time.Duration
	// Notify, if set, is told each change, in order, under no lock.
	Notify func(Change)
}

// The pace of probes: the first comes after 250 ms, then the pause doubles up
// to 800 ms, each ±20 % so that instances do not probe together.
const (
	firstProbe = 250 * time.Millisecond
	lastProbe  = 800 * time.Millisecond
	jitter     = 0.2

	consecutive  = 5  // failures in a row that open
	window       = 20 // recent outcomes looked at
	windowFailed = 10 // failures among them that open
)

// Breaker is a circuit breaker. It may be used by many goroutines at once.
type Breaker struct {
	cfg  Config
	cb   *gobreaker.CircuitBreaker[struct{}]
	shut atomic.Bool // not closed: calls are refused

	// mu guards what follows. It is taken inside gobreaker's own lock, so no
	// method of cb may be called while it is held.
	mu         sync.Mutex
	state      State
	outcomes   uint32 // the last outcomes since the breaker closed, 1 = failed
	seen       int
	hung       int // hung outcomes in a row, the first of which began at hungSince
	hungSince  time.Time
	fatal      bool
	cause      error
	pause      time.Duration
	timer      *time.Timer
	closed     bool
	changes    []Change
	delivering bool
	probes     sync.WaitGroup
}

// New returns a closed breaker.
func New(cfg Config) *Breaker {
	b := &Breaker{cfg: cfg}
	b.cb = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests:   1,
		Interval:      0, // outcomes never age out: a window shorter than a hanging call would see none
		Timeout:       firstProbe / 4,
		ReadyToTrip:   b.readyToTrip,
		IsSuccessful:  func(err error) bool { return verdictOf(err) == Healthy },
		IsExcluded:    func(err error) bool { return verdictOf(err) == Ignored },
		OnStateChange: b.stateChanged,
	})
	return b
}

// Do runs call if the breaker is closed and returns its error, or returns
// ErrOpen without running it.
func (b *Breaker) Do(call func() error) error {
	if b.shut.Load() {
		return ErrOpen
	}
	return b.execute(call)
}

// State tells the current state.
func (b *Breaker) State() State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

// Closed reports whether calls pass. It costs one atomic read.
func (b *Breaker) Closed() bool { return !b.shut.Load() }

// Close ends the probes and waits for one under way. Calls are not affected.
func (b *Breaker) Close() {
	b.mu.Lock()
	b.closed = true
	if b.timer != nil {
		b.timer.Stop()
	}
	b.mu.Unlock()
	b.probes.Wait()
}

// outcome carries a verdict through gobreaker.
type outcome struct {
	error
	verdict Verdict
}

func verdictOf(err error) Verdict {
	if o, ok := err.(outcome); ok { // our own value, never wrapped
		return o.verdict
	}
	return Failed // a panic, reworded by gobreaker
}

func (b *Breaker) execute(call func() error) error {
	defer b.deliver()
	var err error
	_, refused := b.cb.Execute(func() (struct{}, error) {
		begun := time.Now()
		err = call()
		o := outcome{err, b.cfg.Judge(err)}
		if took := time.Since(begun); o.verdict == Healthy && b.cfg.SlowAfter > 0 && took > b.cfg.SlowAfter {
			o = outcome{fmt.Errorf("breaker: the answer took %v", took), Failed}
		}
		b.record(o, begun)
		return struct{}{}, o
	})
	if errors.Is(refused, gobreaker.ErrOpenState) || errors.Is(refused, gobreaker.ErrTooManyRequests) {
		return ErrOpen
	}
	return err
}

// record notes an outcome before gobreaker counts it and asks readyToTrip.
func (b *Breaker) record(o outcome, begun time.Time) {
	if o.verdict == Ignored {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.outcomes <<= 1
	b.seen++
	if o.verdict != Hung {
		b.hung = 0
	} else if b.hung++; b.hung == 1 {
		b.hungSince = begun
	}
	if o.verdict != Healthy {
		b.outcomes |= 1
		b.cause = o.error
	}
	if o.verdict == Fatal {
		b.fatal = true
	}
}

// readyToTrip runs under gobreaker's lock after each failure.
func (b *Breaker) readyToTrip(counts gobreaker.Counts) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	recent := bits.OnesCount32(b.outcomes & (1<<window - 1))
	return b.fatal ||
		counts.ConsecutiveFailures >= consecutive ||
		b.hung >= 2 && time.Since(b.hungSince) >= b.cfg.Patience ||
		b.seen >= window && recent >= windowFailed
}

// stateChanged runs under gobreaker's lock: it only notes.
func (b *Breaker) stateChanged(_ string, from, to gobreaker.State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := Change{From: stateOf(from), To: stateOf(to), At: time.Now()}
	b.state = c.To
	b.shut.Store(c.To != Closed)
	switch c.To {
	case Open:
		c.Err = b.cause
		if c.From == Closed {
			b.pause = firstProbe
		} else {
			b.pause = min(2*b.pause, lastProbe)
		}
		b.schedule()
	case Closed:
		b.outcomes, b.seen, b.hung, b.fatal, b.cause = 0, 0, 0, false, nil
	case HalfOpen:
	}
	b.changes = append(b.changes, c)
}

// schedule plans the next probe. The caller holds mu.
func (b *Breaker) schedule() {
	if b.closed {
		return
	}
	d := time.Duration(float64(b.pause) * (1 - jitter + 2*jitter*rand.Float64()))
	b.timer = time.AfterFunc(d, b.probe)
}

// probe runs on the timer's goroutine, which Close waits for.
func (b *Breaker) probe() {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return
	}
	b.probes.Add(1)
	b.fatal = false
	b.mu.Unlock()
	defer b.probes.Done()

	_ = b.execute(b.cfg.Probe) // its outcome is the change of state

	// An ignored outcome changes nothing, so nothing has planned the next probe.
	b.mu.Lock()
	if b.state == HalfOpen {
		b.schedule()
	}
	b.mu.Unlock()
}

// deliver hands out the noted changes. One goroutine at a time does, so that
// they arrive in order; what is noted meanwhile is delivered by the same one.
func (b *Breaker) deliver() {
	b.mu.Lock()
	if b.delivering {
		b.mu.Unlock()
		return
	}
	b.delivering = true
	for len(b.changes) > 0 {
		changes := b.changes
		b.changes = nil
		b.mu.Unlock()
		if b.cfg.Notify != nil {
			for _, c := range changes {
				b.cfg.Notify(c)
			}
		}
		b.mu.Lock()
	}
	b.delivering = false
	b.mu.Unlock()
}

func stateOf(s gobreaker.State) State {
	switch s {
	case gobreaker.StateClosed:
		return Closed
	case gobreaker.StateOpen:
		return Open
	default:
		return HalfOpen
	}
}
