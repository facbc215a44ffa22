package redistest

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
)

// An Owner stands in for a test in a program that shows something: give it to the
// constructors, inside of [Owner.Try]. What they start ends with [Owner.Close].
// The zero Owner is ready.
type Owner struct {
	testing.TB // nil: this package uses only what is defined below

	trying sync.Mutex // held by Try

	mu       sync.Mutex // guards what follows
	failures []error
	cleanups []func()
}

// A fatal failure unwinds to Try.
type fatal struct{ error }

// Try runs f, which may start servers and use their switches, and returns what
// would have failed a test. One Try runs at a time.
func (o *Owner) Try(f func()) (err error) {
	o.trying.Lock()
	defer o.trying.Unlock()
	defer func() {
		stop := recover()
		if _, ok := stop.(fatal); !ok && stop != nil {
			panic(stop)
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		err = errors.Join(o.failures...)
		o.failures = nil
	}()
	f()
	return nil
}

// Close ends what was started, the last first. It may be called again.
func (o *Owner) Close() {
	for {
		o.mu.Lock()
		n := len(o.cleanups)
		if n == 0 {
			o.mu.Unlock()
			return
		}
		f := o.cleanups[n-1]
		o.cleanups = o.cleanups[:n-1]
		o.mu.Unlock()
		f()
	}
}

// Cleanup has f called by Close.
func (o *Owner) Cleanup(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cleanups = append(o.cleanups, f)
}

// TempDir makes a folder that Close removes.
func (o *Owner) TempDir() string {
	dir, err := os.MkdirTemp("", "limiter-")
	if err != nil {
		o.Fatal(err)
	}
	o.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Fatal ends the Try.
func (o *Owner) Fatal(args ...any) { o.fail(errors.New(fmt.Sprint(args...)), true) }

// Fatalf ends the Try.
func (o *Owner) Fatalf(format string, args ...any) { o.fail(fmt.Errorf(format, args...), true) }

// Errorf is returned by the Try.
func (o *Owner) Errorf(format string, args ...any) { o.fail(fmt.Errorf(format, args...), false) }

func (o *Owner) fail(err error, stop bool) {
	o.mu.Lock()
	o.failures = append(o.failures, err)
	o.mu.Unlock()
	if stop {
		panic(fatal{err})
	}
}

// Failed reports false: the log of a server is not printed.
func (o *Owner) Failed() bool { return false }

// Logf does nothing.
func (o *Owner) Logf(string, ...any) {}

// Helper does nothing.
func (o *Owner) Helper() {}
