package e2e

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
)

// A fleet is some instances of one limiter in this process, each with a client
// of its own, under a steady load.
type fleet struct {
	t         *testing.T
	instances []*instance
	known     int64 // since when all instances know of each other, a stamp
	stop      chan struct{}
	work      sync.WaitGroup
}

// An instance is one of them, with what it did and told.
type instance struct {
	*hybrid.Limiter
	mu     sync.Mutex // guards what follows
	calls  []Call
	events []told
}

// told is an event and when the handler got it.
type told struct {
	hybrid.Event
	at int64
}

// callersEach is how many goroutines make the requests of one instance.
const callersEach = 4

// startFleet starts n instances and, for each, callers that make a request for
// the key together once in the pause.
func startFleet(t *testing.T, n int, pause time.Duration, client func() redis.UniversalClient, limit hybrid.Limit, options ...hybrid.Option) *fleet {
	t.Helper()
	f := &fleet{t: t, stop: make(chan struct{})}
	for range n {
		in := &instance{}
		handler := hybrid.WithEvents(func(e hybrid.Event) {
			if _, ok := e.(hybrid.NearLimit); ok {
				return // an overloaded key is near its limit again and again
			}
			in.mu.Lock()
			defer in.mu.Unlock()
			in.events = append(in.events, told{e, stamp()})
		})
		lim, err := hybrid.New(client(), limit, append(slices.Clone(options), handler, quiet)...)
		if err != nil {
			t.Fatal(err)
		}
		in.Limiter = lim
		f.instances = append(f.instances, in)
	}
	t.Cleanup(f.end)
	for _, in := range f.instances {
		for range callersEach {
			f.work.Go(func() { f.caller(in, callersEach*pause) })
		}
	}
	return f
}

func (f *fleet) caller(in *instance, pause time.Duration) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-f.stop:
			return
		}
		c := Call{Start: stamp(), N: 1}
		res, err := in.Allow(f.t.Context(), "key")
		c.End, c.Allowed, c.Source = stamp(), res.Allowed, res.Source
		if err != nil {
			f.t.Errorf("Allow: %v", err)
			return
		}
		in.mu.Lock()
		in.calls = append(in.calls, c)
		in.mu.Unlock()
	}
}

// end stops the load and closes the limiters.
func (f *fleet) end() {
	f.rest()
	for _, in := range f.instances {
		// What a client of the caller's does not let go of is no fault here.
		var left *hybrid.CloseError
		if err := in.Close(); err != nil && !errors.As(err, &left) {
			f.t.Errorf("Close: %v", err)
		}
	}
}

// rest stops the load.
func (f *fleet) rest() {
	select {
	case <-f.stop:
	default:
		close(f.stop)
	}
	f.work.Wait()
}

// each waits until something is so for each instance.
func (f *fleet) each(what string, so func(*instance) bool) {
	f.t.Helper()
	for _, in := range f.instances {
		eventually(f.t, what, func() bool { return so(in) })
	}
}

// meet waits until all instances know how many they are.
func (f *fleet) meet() {
	f.t.Helper()
	f.each("all know of all", func(in *instance) bool {
		s := in.Stats()
		return s.Instances == len(f.instances) && s.InstancesLive == len(f.instances)
	})
	f.known = stamp()
}

// warm waits until each instance has had so many decisions with Redis.
func (f *fleet) warm(decisions int) {
	f.t.Helper()
	now := stamp()
	f.each("Redis decides", func(in *instance) bool {
		return in.since(now, func(c Call) bool { return c.Source != hybrid.SourceDegraded }) >= decisions
	})
}

// since counts the calls of a kind that began after an instant.
func (in *instance) since(at int64, kind func(Call) bool) (n int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, c := range slices.Backward(in.calls) {
		if c.End < at {
			break // in about this order
		}
		if c.Start >= at && kind(c) {
			n++
		}
	}
	return n
}

// degraded reports whether the outage policy decides.
func (in *instance) degraded() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	open := false
	for _, e := range in.events {
		switch e.Event.(type) {
		case hybrid.Degraded:
			open = true
		case hybrid.Recovered:
			open = false
		}
	}
	return open
}

// outages pairs the events of an instance. It fails the test if they are not in
// order: the changes of the breaker make a chain, it opens before Degraded is
// told and closes before Recovered is, and these two alternate.
func (in *instance) outages(t *testing.T) (pairs []outage) {
	t.Helper()
	in.mu.Lock()
	defer in.mu.Unlock()
	state, open := "closed", false
	var previous hybrid.Event
	for i, e := range in.events {
		if anyTime(e) {
			continue
		}
		if previous != nil && e.When().Before(previous.When()) {
			t.Errorf("event %d is of %v, before the event before it: %+v", i, e.When(), in.events)
		}
		_, changed := previous.(hybrid.BreakerChanged)
		previous = e.Event
		switch e := e.Event.(type) {
		case hybrid.BreakerChanged:
			if e.From != state {
				t.Errorf("event %d: the breaker went from %s to %s and was %s", i, e.From, e.To, state)
			}
			state = e.To
		case hybrid.Degraded:
			if !changed || open || state != "open" {
				t.Errorf("event %d is Degraded out of order: %+v", i, in.events)
			}
			open = true
			pairs = append(pairs, outage{from: e, fromTold: in.events[i].at})
		case hybrid.Recovered:
			if !changed || !open || state != "closed" {
				t.Fatalf("event %d is Recovered out of order: %+v", i, in.events)
			}
			open = false
			pairs[len(pairs)-1].to, pairs[len(pairs)-1].toTold = e, in.events[i].at
		default:
			t.Errorf("event %d is unexpected: %+v", i, e)
		}
	}
	if open || len(pairs) == 0 || state != "closed" {
		t.Fatalf("it did not end well: %d outages, the breaker is %s: %+v", len(pairs), state, in.events)
	}
	return pairs
}

// anyTime reports whether an event has nothing to do with the state of the breaker.
func anyTime(e told) bool {
	switch e.Event.(type) {
	case hybrid.InstancesChanged, hybrid.StateLost:
		return true
	}
	return false
}

// An outage is a Degraded and the Recovered after it.
type outage struct {
	from             hybrid.Degraded
	to               hybrid.Recovered
	fromTold, toTold int64
}

// instant puts the time of an event on the clock of stamps.
func instant(e hybrid.Event) int64 { return epoch.UnixNano() + int64(e.When().Sub(epoch)) }
