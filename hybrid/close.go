package hybrid

import (
	"time"

	"github.com/resilient-go/limiter/local"
	"github.com/resilient-go/limiter/remote"
)

// closeGrace is what Close takes beyond the remote time-out at most.
const closeGrace = 40 * time.Millisecond

// Close ends the limiter: those who wait get [ErrClosed], permits on lease are
// given back, and its goroutines end, within the remote time-out and 50 ms.
// Later calls get ErrClosed. What cannot be given back within that time, as with
// very many leases, is free again when the leases end. Close may be called again and
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
	l.ForceDegraded(0)
	l.sweeper.stop()
	l.members.leave(l)
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
	calls := l.lanes.close()
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
	e.stopTimer()
	l.giveBack(e, now)
}

// giveBack returns what is held on lease, for an entry that is not used again.
// mu is held and no message is under way.
func (l *Limiter) giveBack(e *entry, now int64) {
	e.withdraw()
	metered := e.lease.Rate() > 0
	msg := l.returning(e, now)
	debit, until := e.takeDebit()
	msg.Charge += debit * local.Unit
	msg.Until = windowLeft(until, now)
	if msg.Returned == 0 && !metered && debit == 0 {
		return
	}
	l.flights.add()
	done := func(a remote.Answer, err error) {
		if err != nil {
			l.stranded.Add(msg.Returned / local.Unit)
			l.written(e, debit)
		} else {
			l.counts.returned.Add(uint64(msg.Returned / local.Unit))
			l.unaccounted(e, notCharged(debit, a.Beyond))
		}
		l.flights.done()
	}
	if err := e.lane.Load().root.Acquire(msg, done); err != nil {
		done(remote.Answer{}, err)
	}
}

// returning is the message that gives a lease back. What is held is removed
// here first, so that nothing is ever in two places.
func (l *Limiter) returning(e *entry, now int64) *remote.Message {
	held, part, spent, lost := e.lease.Remove(now)
	l.settle(e)
	l.account(e, spent, held+lost, now)
	l.counts.expired.Add(uint64(lost))
	live, all := l.fleet(now)
	return &remote.Message{
		Key: e.key, Limit: e.mine.remote(), Seq: l.seq.Add(1), TTL: leaseFor(l.cfg.horizon),
		Returned: held*local.Unit + part, Spent: spent * local.Unit,
		Charge: e.fallback.owed(e, now) * local.Unit,
		Live:   live, Peak: all,
	}
}
