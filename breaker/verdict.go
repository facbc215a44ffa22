package breaker

import (
	"errors"
	"fmt"
	"math/bits"
	"time"

	"github.com/sony/gobreaker/v2"
)

// A Verdict is what the outcome of one call says about Redis.
type Verdict uint8

const (
	// Healthy outcomes are answers, denials among them.
	Healthy Verdict = iota
	// Ignored outcomes say nothing about Redis: the caller gave up.
	Ignored
	// Failed outcomes open the breaker at five in a row, or ten of the last twenty;
	// so do Hung ones, of which those that hung at the same time count as one.
	Failed
	// Hung outcomes are failures without an answer. Two of them open the breaker
	// when nothing was heard for Config.Patience.
	Hung
	// Fatal outcomes, such as a wrong password, open it at once.
	Fatal
)

const (
	consecutive  = 5  // failures in a row that open
	window       = 20 // recent outcomes looked at
	windowFailed = 10 // failures among them that open
)

// errNoReturn is the outcome of a call that ended its goroutine.
var errNoReturn = errors.New("breaker: the call did not return")

// outcome carries a verdict through gobreaker.
type outcome struct {
	error
	verdict Verdict
}

func verdictOf(err error) Verdict { return err.(outcome).verdict }

// judge is the verdict on a call that returned err after that time.
func (b *Breaker) judge(err error, took time.Duration) outcome {
	o := outcome{err, b.cfg.Judge(err)}
	if o.verdict == Healthy && b.cfg.SlowAfter > 0 && took > b.cfg.SlowAfter {
		o = outcome{fmt.Errorf("breaker: the answer took %v", took), Failed}
	}
	return o
}

// recent is what the breaker remembers of outcomes since it closed.
type recent struct {
	failed uint32    // the last outcomes, 1 = failed
	inRow  int       // failures in a row
	hung   int       // hung outcomes in a row,
	quiet  time.Time // since when nothing was heard: no earlier than the first began,
	given  time.Time // and when the last one was given up
	heard  time.Time // the last outcome that was not hung
	fatal  bool
	cause  error // of the last failure
}

// record notes an outcome before gobreaker counts it and asks readyToTrip.
// Like gobreaker it drops one of a call that began before the last change.
func (b *Breaker) record(o outcome, begun time.Time, era uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if o.verdict == Ignored || era != b.era {
		return
	}
	r := &b.recent
	// Calls that hung at the same time are one thing that happened, not many.
	same := o.verdict == Hung && r.hung > 0 && begun.Before(r.given)
	if !same {
		r.failed <<= 1
		r.inRow++
	}
	if o.verdict == Healthy {
		r.inRow = 0
	} else {
		r.failed |= 1
		r.cause = o.error
	}
	if o.verdict != Hung {
		r.hung, r.heard = 0, time.Now()
	} else {
		if r.hung++; r.hung == 1 {
			r.quiet = begun
			if r.heard.After(begun) {
				r.quiet = r.heard
			}
		}
		r.given = time.Now()
	}
	if o.verdict == Fatal {
		r.fatal = true
	}
}

// readyToTrip runs under gobreaker's lock after each failure.
func (b *Breaker) readyToTrip(gobreaker.Counts) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &b.recent
	return r.fatal ||
		r.inRow >= consecutive ||
		bits.OnesCount32(r.failed&(1<<window-1)) >= windowFailed ||
		r.hung >= 2 && time.Since(r.quiet) >= b.cfg.Patience
}
