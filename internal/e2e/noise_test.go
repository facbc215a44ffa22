package e2e

import (
	"sync"
	"time"
)

// noise is the control of tests on durations. Beside the load it measures what
// this machine adds to whatever is done on it: as many goroutines, which wake up
// as often as the callers, ask another goroutine and get its answer, and a
// watchman notes when the process stood still.
type noise struct {
	stop chan struct{}
	work sync.WaitGroup

	mu     sync.Mutex // guards what follows
	took   []time.Duration
	stalls []stall
}

// A stall is a time in which nothing ran.
type stall struct{ from, to int64 }

// The watchman makes his round each watch; he notes what delays him by stalled.
const (
	watch   = 2 * time.Millisecond
	stalled = 10 * time.Millisecond
)

// startNoise starts the control of so many callers, with the pause between two
// requests of one.
func startNoise(callers int, pause time.Duration) *noise {
	n := &noise{stop: make(chan struct{})}
	for range callers {
		n.work.Go(func() { n.caller(pause) })
	}
	n.work.Go(n.watchman)
	return n
}

func (n *noise) caller(pause time.Duration) {
	ask, answer := make(chan struct{}), make(chan struct{})
	n.work.Go(func() {
		for range ask {
			answer <- struct{}{}
		}
	})
	defer close(ask)
	n.every(pause, func() {
		begun := time.Now()
		ask <- struct{}{}
		<-answer
		took := time.Since(begun)
		n.mu.Lock()
		n.took = append(n.took, took)
		n.mu.Unlock()
	})
}

func (n *noise) watchman() {
	last := stamp()
	n.every(watch, func() {
		now := stamp()
		if now-last > int64(watch+stalled) {
			n.mu.Lock()
			n.stalls = append(n.stalls, stall{last, now})
			n.mu.Unlock()
		}
		last = now
	})
}

func (n *noise) every(pause time.Duration, do func()) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			do()
		case <-n.stop:
			return
		}
	}
}

// end stops the control.
func (n *noise) end() {
	close(n.stop)
	n.work.Wait()
}

// slow is how many exchanges took longer than a bound.
func (n *noise) slow(bound time.Duration) (slow int) {
	for _, d := range n.took {
		if d > bound {
			slow++
		}
	}
	return slow
}

// worst is the longest delay.
func (n *noise) worst() (worst time.Duration) {
	for _, d := range n.took {
		worst = max(worst, d)
	}
	for _, s := range n.stalls {
		worst = max(worst, time.Duration(s.to-s.from))
	}
	return worst
}

// stood is for how long the process stood still in all.
func (n *noise) stood() (d time.Duration) {
	for _, s := range n.stalls {
		d += time.Duration(s.to - s.from)
	}
	return d
}

// net is how long a call took, less the time in which the process stood still.
func (n *noise) net(c Call) time.Duration {
	took := c.End - c.Start
	for _, s := range n.stalls {
		took -= max(0, min(c.End, s.to)-max(c.Start, s.from))
	}
	return time.Duration(took)
}
