package hybrid

import (
	"log/slog"
	"time"

	"github.com/resilient-go/limiter/local"
	"github.com/resilient-go/limiter/remote"
)

// Unaccounted says that a reservation has cost more than could be charged: its key
// was a whole burst in debt, or the message was lost. It is told once a minute at
// most; Stats.TokensUnaccounted has the sum.
type Unaccounted struct {
	At     time.Time
	Tokens int
	// Key is the name in Redis. It is not logged.
	Key string
}

// When implements [Event].
func (e Unaccounted) When() time.Time { return e.At }

func (e Unaccounted) attrs() (slog.Level, string, []slog.Attr) {
	return slog.LevelWarn, "rate limiter could not charge all", []slog.Attr{slog.Int("tokens", e.Tokens)}
}

// unaccounted counts tokens that were used and are charged to nobody.
func (l *Limiter) unaccounted(e *entry, n int64) {
	if n <= 0 {
		return
	}
	l.counts.unaccounted.Add(uint64(n))
	if now := time.Now(); l.reminder.due(overdraft, now) {
		l.events.push(Unaccounted{At: now, Tokens: int(n), Key: e.key})
	}
}

// correctRoot has the root charged for more tokens, or given some back, with the
// next message. Where none would go out soon, one is sent. mu is held.
// until is when the window ends that they were counted in, 0 if there is none.
func (l *Limiter) correctRoot(e *entry, more, until, now int64) {
	// A sliding log does not know of which entry it is, and what has left a window would
	// come on top of what was admitted since.
	if more < 0 && (l.cfg.algorithm == SlidingLog || until != 0 && now >= until) {
		l.counts.lost.Add(uint64(-more))
		return
	}
	e.hold(now, 0)
	if s := e.share; s != nil {
		if more < 0 {
			s.Give(-more)
		} else { // into a debt of its burst
			s.Owe(min(more, max(0, s.Level()+e.force().largest)))
		}
	}
	if more < 0 && l.cfg.tiers == nil { // what was not charged is not given back
		set := min(-more, e.unpaid)
		e.unpaid -= set
		more += set
	}
	most := 2 * e.force().deepest // from a full bucket into a debt of one burst
	sum := max(-most, min(e.debit+more, most))
	l.unaccounted(e, e.debit+more-sum)
	e.debit = sum
	if more < 0 {
		e.within(until)
	}
	e.withdraw() // what comes back may let somebody pass
	l.payUp(e, now)
	if e.flight == nil && (!e.tracked || l.closed.Load()) { // no message will come by
		debit, _ := e.takeDebit()
		l.written(e, debit)
	}
}

// written writes corrections off that can reach nobody.
func (l *Limiter) written(e *entry, debit int64) {
	if debit > 0 {
		l.unaccounted(e, debit)
	} else {
		l.counts.lost.Add(uint64(-debit))
	}
}

// notCharged is what of the corrections of a message lies beyond the debt of one
// burst. The rest of its charge was admitted in an outage.
func notCharged(debit, beyond int64) int64 {
	return max(0, min((beyond+local.Unit-1)/local.Unit, debit))
}

// correctPart is correctRoot for the part of an outage. mu is held.
func (l *Limiter) correctPart(e *entry, more, now int64) {
	f := e.fallback
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.quota == nil {
		return
	}
	if more > 0 {
		charged := f.quota.Owe(more, now)
		f.taken += charged
		l.unaccounted(e, more-charged)
		return
	}
	back := f.quota.Give(-more, now)
	f.taken = max(0, f.taken-back)
	l.counts.lost.Add(uint64(-more - back))
	e.withdraw()
}

// payUp tells the root of corrections if no other message will. mu is held.
func (l *Limiter) payUp(e *entry, now int64) {
	if e.debit != 0 && e.flight == nil && now >= e.badUntil && !e.dead && !l.closed.Load() && l.up(e) && !e.mine.fixed() &&
		(e.lease.Idle() || e.lease.Ended(now)) {
		l.send(e, l.message(e, now))
	}
}

// takeDebit gives the corrections that a message takes along. mu is held.
func (e *entry) takeDebit() (n, until int64) {
	n, until, e.debit, e.until = e.debit, e.until, 0, 0
	return n, until
}

// within notes when the window ends of something that is given back. Of several the
// first counts: what is taken from an older window comes back for a shorter time.
func (e *entry) within(until int64) {
	if e.until == 0 || until != 0 && until < e.until {
		e.until = until
	}
}

// windowLeft is how long a window still lasts, 0 if there is none.
func windowLeft(until, now int64) time.Duration {
	if until == 0 {
		return 0
	}
	return time.Duration(max(1000, until-now))
}

// undelivered deals with the corrections of a message that has no answer: it is sent
// at most once, so they are kept only if it was not sent. mu is held.
func (l *Limiter) undelivered(e *entry, n, until int64, class remote.Class) {
	switch {
	case n == 0:
	case !class.Unknown() && !e.dead:
		e.debit += n
		e.within(until)
	default:
		l.written(e, n)
	}
}

// dueIn is how long a debt of the root, in micro-tokens below 0, takes to be paid.
// No lease has a rate meanwhile.
func (l *Limiter) dueIn(e *entry, f *flight, tokens int64) time.Duration {
	if tokens >= 0 {
		return 0
	}
	d := e.force().timeFor(-tokens)
	if f.msg.Peak > f.msg.Live && f.msg.Live > 0 { // the root gains in that proportion
		d = time.Duration(float64(d)*float64(f.msg.Peak)/float64(f.msg.Live)) + 1
	}
	return d
}

// bookPart decides a reservation by the part of an outage, which may go into a debt
// of its own burst. mu and that of the fallback are held.
func (l *Limiter) bookPart(e *entry, n int64, k kind, now int64) Result {
	f := e.fallback
	q := f.at(l, e, now)
	burst := f.shape.burst
	if burst == 0 {
		return e.force().ofQuota(&f.shape, false, 0, refusedFor)
	}
	delay, ok := q.Book(n, l.keep(k, burst)-burst, now)
	if !ok {
		return e.force().ofQuota(&f.shape, false, q.Tokens(now), max(1, q.RetryAfter(n+l.keep(k, burst)-burst, now)))
	}
	f.taken += n
	e.claim = claim{due: now + int64(delay)}
	return e.force().ofQuota(&f.shape, true, q.Tokens(now), 0)
}

// due is the instant at which a reservation falls due that has left the root so many
// micro-tokens: when its debt, and that of the local share, are paid.
func (l *Limiter) due(e *entry, f *flight, tokens, now int64) int64 {
	d := l.dueIn(e, f, tokens)
	if e.share != nil {
		d = max(d, e.share.PaidIn())
	}
	return now + int64(d)
}
