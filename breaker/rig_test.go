package breaker_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/resilient-go/limiter/breaker"
)

// A rig is a breaker in a bubble, with a probe that can be told what to find.
type rig struct {
	*breaker.Breaker
	t     *testing.T
	start time.Time

	mu      sync.Mutex
	probe   func() error
	probed  []time.Time // when each probe began
	changes []breaker.Change
}

// inBubble runs a test with a rig, which is closed at the end.
func inBubble(t *testing.T, test func(t *testing.T, r *rig), options ...func(*breaker.Config)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, start: time.Now(), probe: func() error { return errFailed }}
		cfg := breaker.Config{Judge: judge, Probe: r.runProbe, Notify: r.note}
		for _, o := range options {
			o(&cfg)
		}
		r.Breaker = breaker.New(cfg)
		test(t, r)
		r.Close()
	})
}

func (r *rig) runProbe() error {
	r.mu.Lock()
	r.probed = append(r.probed, time.Now())
	p := r.probe
	r.mu.Unlock()
	return p()
}

func (r *rig) note(c breaker.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes = append(r.changes, c)
}

// probes tells what the next probes do.
func (r *rig) probes(p func() error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.probe = p
}

// count is how many probes have begun.
func (r *rig) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.probed)
}

// pauses is how long after the opening, or the last probe, each probe began.
func (r *rig) pauses(opened time.Time) []time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	var pauses []time.Duration
	for _, at := range r.probed {
		pauses = append(pauses, at.Sub(opened))
		opened = at
	}
	return pauses
}

// seen is what Notify was told, as "closed>open" and so on.
func (r *rig) seen() []string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, c := range r.changes {
		all = append(all, c.From.String()+">"+c.To.String())
	}
	return all
}

// call makes a call that ends with err after that time.
func (r *rig) call(err error, after time.Duration) {
	r.t.Helper()
	ran := false
	got := r.Do(func() error {
		ran = true
		<-time.After(after)
		return err
	})
	if !ran || got != err {
		r.t.Errorf("a call that ends with %v: ran %v, got %v", err, ran, got)
	}
}

// during is call in the background.
func (r *rig) during(err error, after time.Duration) {
	go r.call(err, after)
	synctest.Wait()
}

// calls makes n of them, one after the other.
func (r *rig) calls(n int, err error) {
	r.t.Helper()
	for range n {
		r.call(err, 0)
	}
}

// wants checks the state, and that Do goes by it.
func (r *rig) wants(s breaker.State) {
	r.t.Helper()
	synctest.Wait()
	if got := r.State(); got != s || r.Closed() != (s == breaker.Closed) {
		r.t.Fatalf("after %v the breaker is %v, closed: %v; want %v", time.Since(r.start), got, r.Closed(), s)
	}
	if s == breaker.Closed {
		return
	}
	before := time.Now()
	err := r.Do(func() error {
		r.t.Errorf("a call ran while the breaker was %v", s)
		return nil
	})
	if err != breaker.ErrOpen || !time.Now().Equal(before) {
		r.t.Fatalf("Do of a breaker that is %v returned %v after %v", s, err, time.Since(before))
	}
}

// open opens the breaker now.
func (r *rig) open() {
	r.t.Helper()
	r.call(errFatal, 0)
	r.wants(breaker.Open)
}

// recover has the next probe succeed and waits for it.
func (r *rig) recover() {
	r.t.Helper()
	r.probes(func() error { return nil })
	time.Sleep(time.Second) // the longest pause is 960 ms
	synctest.Wait()
	r.wants(breaker.Closed)
}
