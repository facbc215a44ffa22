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
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
)

// ErrOpen is what Do answers while the breaker is open or half-open.
var ErrOpen = errors.New("breaker: open")

// A State is what the breaker does with calls.
type State uint8

// Closed lets calls pass, Open refuses them, HalfOpen refuses them while it
// waits for the outcome of a probe.
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

// Config is what New needs. Judge and Probe are required.
type Config struct {
	// Judge gives the verdict on the outcome of a call, nil included.
	Judge func(error) Verdict
	// Probe makes one real call. It must return within a bound of its own.
	Probe func() error
	// Early, if set, is asked every 50 ms while the breaker is open, and has the next
	// probe come now. It must return at once.
	Early func() bool
	// SlowAfter makes a healthy call that took longer count as Failed; 0 means never.
	SlowAfter time.Duration
	// Patience is how long calls may hang in a row; 0 means that two suffice.
	Patience time.Duration
	// Notify, if set, is told each change, in order and under no lock, when the
	// call that caused it ends and on that call's goroutine. It must not panic or
	// call Close.
	Notify func(Change)
}

// Breaker is a circuit breaker. It may be used by many goroutines at once.
type Breaker struct {
	cfg  Config
	cb   *gobreaker.TwoStepCircuitBreaker[struct{}]
	shut atomic.Bool // not closed: calls are refused

	// mu guards what follows. It is taken inside gobreaker's own lock, so no
	// method of cb may be called while it is held.
	mu         sync.Mutex
	state      State
	era        uint64 // counts changes: an outcome of an earlier era is dropped
	recent     recent
	pause      time.Duration
	due        time.Time // for the next probe
	timer      *time.Timer
	closed     bool
	changes    []Change
	delivering bool
	probes     sync.WaitGroup // planned or under way
}

// New returns a closed breaker.
func New(cfg Config) *Breaker {
	b := &Breaker{cfg: cfg}
	b.cb = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests:   1,
		Interval:      0,              // outcomes never age out: a window shorter than a hanging call would see none
		Timeout:       earlyEvery / 2, // it is our timer that probes: never too early for gobreaker
		ReadyToTrip:   b.readyToTrip,
		IsSuccessful:  func(err error) bool { return verdictOf(err) == Healthy },
		IsExcluded:    func(err error) bool { return verdictOf(err) == Ignored },
		OnStateChange: b.stateChanged,
	})
	return b
}

// Do runs call if the breaker is closed and returns its error, or returns
// ErrOpen without running it. A call that panics has failed, and so has one
// that ends its goroutine.
func (b *Breaker) Do(call func() error) error {
	if b.shut.Load() {
		return ErrOpen
	}
	defer b.deliver()
	return b.execute(call, false)
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
	if b.timer != nil && b.timer.Stop() {
		b.probes.Done()
	}
	b.mu.Unlock()
	b.probes.Wait()
}

// execute runs one call through gobreaker. Whatever becomes of the call, its
// permit is given back: one that is not would keep gobreaker half-open for ever.
func (b *Breaker) execute(call func() error, probing bool) error {
	done, refused := b.cb.Allow()
	if refused != nil {
		return ErrOpen
	}
	begun := time.Now()
	era, state := b.current()
	o := outcome{errNoReturn, Failed}
	defer func() {
		p := recover()
		if p != nil {
			o = outcome{fmt.Errorf("breaker: the call panicked: %v", p), Failed}
		}
		b.record(o, begun, era)
		done(o)
		if p != nil && !probing {
			panic(p)
		}
	}()
	if state != Closed && !probing {
		// The breaker opened since Do looked, and gobreaker took this for the probe.
		o = outcome{ErrOpen, Ignored}
		return ErrOpen
	}
	err := call()
	o = b.judge(err, time.Since(begun))
	return err
}

// current tells the era and the state.
func (b *Breaker) current() (era uint64, s State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.era, b.state
}
