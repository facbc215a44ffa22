package hybrid

import (
	"sync"
	"time"

	"github.com/resilient-go/limiter/local"
	"github.com/resilient-go/limiter/remote"
)

// closeGrace is what Close takes beyond the remote time-out at most.
const closeGrace = 40 * time.Millisecond

// Close ends the limiter: those who wait get [ErrClosed], permits on lease are
// given back, and its goroutines end, within the remote time-out and 50 ms.
// Later calls of any method get ErrClosed. Close may be called again and
// concurrently; each call returns when the first has done its work, with the
// same error: nil, or a [*CloseError] with what had to be left behind.
//
// The Redis client is the caller's to close, afterwards.
func (l *Limiter) Close() error {
	if l.closed.Swap(true) {
		<-l.ended
		return l.endErr
	}
	defer close(l.ended)
	close(l.closing)
	l.sweeper.stop()
	l.keys.All(func(e *entry) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.flight == nil {
			l.dismiss(e, l.now())
		}
	})

	// Messages under way end within the time-out, and what they bring is given
	// back. Not later than that the remote client stops waiting.
	landed := l.flights.zero()
	t := time.NewTimer(l.cfg.timeout)
	defer t.Stop()
	select {
	case <-landed:
	case <-t.C:
	}
	calls := l.redis.Close()
	l.breaker.Close()
	<-landed // what was left has failed by now
	unreturned := l.stranded.Load()
	l.events.wait(closeGrace / 2)
	if calls > 0 || unreturned > 0 {
		l.endErr = &CloseError{Calls: calls, Tokens: unreturned}
	}
	return l.endErr
}

// dismiss ends a key: those who wait leave by themselves, and what is held is
// given back. mu is held and no message is under way.
func (l *Limiter) dismiss(e *entry, now int64) {
	if e.timer != nil {
		e.timer.Stop()
	}
	l.giveBack(e, now)
}

// giveBack returns what is held on lease, for an entry that is not used again.
// mu is held and no message is under way.
func (l *Limiter) giveBack(e *entry, now int64) {
	metered := e.lease.Rate() > 0
	msg := l.returning(e, now)
	if msg.Returned == 0 && !metered {
		return
	}
	l.flights.add()
	done := func(_ remote.Answer, err error) {
		if err != nil {
			l.stranded.Add(msg.Returned / local.Unit)
		} else {
			l.counts.returned.Add(uint64(msg.Returned / local.Unit))
		}
		l.flights.done()
	}
	if err := l.redis.Acquire(msg, done); err != nil {
		done(remote.Answer{}, err)
	}
}

// returning is the message that gives a lease back. What is held is removed
// here first, so that nothing is ever in two places.
func (l *Limiter) returning(e *entry, now int64) *remote.Message {
	held, part, spent, lost := e.lease.Remove(now)
	l.settle(e)
	l.counts.expired.Add(uint64(lost))
	return &remote.Message{
		Key: e.key, Limit: l.units.remote(), Seq: l.seq.Add(1), TTL: leaseFor(l.cfg.horizon),
		Returned: held*local.Unit + part, Spent: spent * local.Unit,
	}
}

// A tally counts messages under way. Unlike with a WaitGroup, one may begin
// while somebody waits for the last to end.
type tally struct {
	mu   sync.Mutex // guards what follows
	n    int
	none chan struct{} // closed at the next n = 0
}

func (t *tally) add() {
	t.mu.Lock()
	t.n++
	t.mu.Unlock()
}

func (t *tally) done() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n--; t.n == 0 && t.none != nil {
		close(t.none)
		t.none = nil
	}
}

// zero returns a channel that is closed when nothing is under way.
func (t *tally) zero() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.none == nil {
		t.none = make(chan struct{})
	}
	none := t.none
	if t.n == 0 {
		close(none)
		t.none = nil
	}
	return none
}

// A sweeper gives back leases that lie idle: those of keys that nobody asked for
// during half a horizon. It runs while there are leases.
type sweeper struct {
	mu      sync.Mutex // guards what follows
	timer   *time.Timer
	running bool
	again   bool // a lease was granted during a round
	stopped bool
	work    sync.WaitGroup
}

// start sees to it that the sweeper runs.
func (s *sweeper) start(l *Limiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.again = true
	if s.running || s.stopped {
		return
	}
	s.running = true
	s.timer = time.AfterFunc(l.cfg.horizon/2, func() { s.sweep(l) })
}

// stop ends the sweeper and waits for a round under way.
func (s *sweeper) stop() {
	s.mu.Lock()
	s.stopped = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	s.work.Wait()
}

// sweep makes one round over the keys.
func (s *sweeper) sweep(l *Limiter) {
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return
	}
	s.work.Add(1)
	s.again = false
	s.mu.Unlock()
	defer s.work.Done()

	held := false
	l.keys.All(func(e *entry) {
		if e.lease.Idle() {
			return
		}
		held = true
		l.returnIdle(e)
	})

	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = (held || s.again) && !s.stopped
	if s.running {
		s.timer.Reset(l.cfg.horizon / 2)
	}
}

// returnIdle gives a lease back if its key was not asked for lately. A key
// whose horizon is stretched may rest in proportion. In an outage it is kept:
// it was paid for.
func (l *Limiter) returnIdle(e *entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := l.now()
	if leased := e.leased.Load(); leased != e.seen {
		e.seen, e.active = leased, now
	}
	rest := e.demand.Horizon(l.cfg.horizon, longestHorizon, callsPerLump) / 2
	switch {
	case e.flight != nil || e.dead || e.queued > 0 || now-e.active < int64(rest):
	case e.lease.Ended(now):
		l.returning(e, now) // it has ended: nothing to send
	case l.breaker.Closed():
		l.send(e, &flight{msg: l.returning(e, now), sent: now})
	}
}
