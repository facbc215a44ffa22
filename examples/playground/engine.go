package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/resilient-go/limiter/hybrid"
)

const (
	frameLength = 100 * time.Millisecond
	lookLength  = 20 * time.Millisecond
	// keptFrames is what a page gets that is opened later.
	keptFrames = 600
	keptLines  = 200
)

// An engine runs a fleet under load and tells its listeners.
type engine struct {
	redis setup
	begun time.Time

	acting sync.Mutex // held while something is changed; taken before mu
	gen    *generator // changed while acting is held

	mu       sync.Mutex // guards what follows
	settings Settings
	fleet    []*instance
	meter    *meter
	lost     int // bursts that Redis may have given anew, since the windows began
	condition
	frames    []Frame
	lines     []Line
	listeners map[*listener]struct{}

	stop chan struct{}
	loop sync.WaitGroup
}

// start starts an engine.
func start(redis setup, s Settings) (*engine, error) {
	e := &engine{
		redis: redis, begun: time.Now(), settings: s, condition: running,
		meter: newMeter(s.Instances), listeners: map[*listener]struct{}{}, stop: make(chan struct{}),
	}
	fleet, err := startFleet(redis, s, e.tell)
	if err != nil {
		return nil, err
	}
	e.fleet = fleet
	e.gen = generate(fleet, s, e.begun, e.meter.note)
	e.loop.Go(e.run)
	return e, nil
}

// close ends the engine. It does not close the setup.
func (e *engine) close() {
	e.acting.Lock()
	defer e.acting.Unlock()
	close(e.stop)
	e.loop.Wait()
	e.gen.close()
	closeFleet(e.fleet)
	e.mu.Lock()
	defer e.mu.Unlock()
	for l := range e.listeners {
		e.dismiss(l)
	}
}

func (e *engine) run() {
	ticker := time.NewTicker(lookLength)
	defer ticker.Stop()
	for i := 1; ; i++ {
		select {
		case <-e.stop:
			return
		case <-ticker.C:
		}
		e.mu.Lock()
		e.meter.look(time.Since(e.begun))
		if i%int(frameLength/lookLength) == 0 {
			e.frame()
		}
		e.mu.Unlock()
	}
}

// frame makes the next frame; the lock is held.
func (e *engine) frame() {
	f := e.meter.take(len(e.fleet))
	f.At = e.at()
	f.Limit = float64(e.settings.Limit) * frameLength.Seconds()
	f.Worst = e.meter.worst(e.settings, e.lost)
	for _, in := range e.fleet {
		stats := in.lim.Stats()
		f.Calls = append(f.Calls, in.redisCalls(stats))
		f.Breakers = append(f.Breakers, stats.Breaker)
		f.Degraded = append(f.Degraded, stats.Degraded)
		f.Cut = append(f.Cut, in.wire.isCut())
	}
	e.frames = append(e.frames, f)
	if len(e.frames) > keptFrames {
		e.frames = slices.Delete(e.frames, 0, len(e.frames)-keptFrames)
	}
	e.send("frame", f)
}

// apply changes the settings. What the limiters cannot change gets new limiters.
func (e *engine) apply(s Settings) error {
	if err := s.validate(); err != nil {
		return err
	}
	e.acting.Lock()
	defer e.acting.Unlock()
	old := e.now()
	switch {
	case s == old:
		return nil
	case !s.sameFleet(old):
		if err := e.rebuild(s); err != nil {
			return err
		}
	default:
		if s.limit() != old.limit() {
			for _, in := range e.fleet {
				if err := in.lim.SetLimit(s.limit()); err != nil {
					return err
				}
			}
		}
		e.gen.set(s)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.settings = s
	if s.limit() != old.limit() || s.Algorithm != old.Algorithm {
		// What is on lease now was cut from the old bucket.
		lease := max(time.Second, 5*time.Duration(old.Horizon)*time.Millisecond)
		e.meter.forget(time.Since(e.begun) + lease)
		e.lost = 0
	}
	e.say("you", "set", changes(old, s))
	e.send("state", e.state())
	return nil
}

// rebuild replaces the fleet; acting is held.
func (e *engine) rebuild(s Settings) error {
	e.gen.close()
	closeFleet(e.fleet)
	fleet, err := startFleet(e.redis, s, e.tell)
	if err != nil {
		return err
	}
	e.mu.Lock()
	e.fleet = fleet
	e.meter.take(len(fleet)) // the few decisions of an unfinished frame
	e.mu.Unlock()
	e.gen = generate(fleet, s, e.begun, e.meter.note)
	return nil
}

func (e *engine) now() Settings {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.settings
}

// do does what a button says.
func (e *engine) do(a action) error {
	e.acting.Lock()
	defer e.acting.Unlock()
	if !slices.Contains(actions, a) {
		return fmt.Errorf("there is no action %q", a)
	}
	e.mu.Lock()
	why := e.cannot(a)
	e.mu.Unlock()
	if why != "" {
		return fmt.Errorf("%s: %s", a, why)
	}
	e.mu.Lock()
	e.say("Redis", string(a), a.text())
	e.mu.Unlock()
	lost, err := e.redis.do(a) // a server takes its time to start: frames go on
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil {
		e.say("Redis", "failed", err.Error())
		return err
	}
	if lost {
		e.lost++
	}
	e.condition = e.after(a)
	e.send("state", e.state())
	return nil
}

// cut cuts an instance off from Redis, or mends that.
func (e *engine) cut(i int, cut bool) error {
	e.acting.Lock()
	defer e.acting.Unlock()
	if i < 0 || i >= len(e.fleet) {
		return fmt.Errorf("there is no instance %d", i+1)
	}
	e.fleet[i].wire.setOwn(cut)
	e.mu.Lock()
	defer e.mu.Unlock()
	text := "is connected again"
	if cut {
		text = "is cut off: nothing arrives, and nobody is told"
	}
	e.say(instanceName(i), "cut", text)
	return nil
}

// tell logs an event of an instance's limiter.
func (e *engine) tell(i int, event hybrid.Event) {
	if kind, text := describe(event); text != "" {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.say(instanceName(i), kind, text)
	}
}

func instanceName(i int) string { return fmt.Sprintf("instance %d", i+1) }
