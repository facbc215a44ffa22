package sim

import (
	"math/rand/v2"
	"time"

	"github.com/resilient-go/limiter/remote"
)

// Some faults cost nothing unless much else happens at the right time. These lie in
// wait for the instant at which an error would do the most harm, and then have
// everybody use all that he believes to have.

// pause stops processes: at any time, or right after a grant for about as long as
// the lease lives. When they go on they use all that they believe to have.
func (s *schedule) pause(rnd *rand.Rand) {
	stop := func(slot int, d time.Duration) {
		m := s.fleet[slot]
		if m == nil {
			return
		}
		s.diary.note("instance %d stands still for %v", m.name, d)
		m.Pause(d)
		end := s.w.Now() + d
		s.quiet = max(s.quiet, end)
		if rnd.IntN(2) == 0 {
			s.rest(rnd, m, s.w.Now(), end)
		}
		if rnd.IntN(4) > 0 {
			s.burst(rnd, end, 1, s.instances)
		}
	}
	s.times(rnd, 3, func() {
		if rnd.IntN(3) == 0 {
			stop(rnd.IntN(s.instances), s.length(rnd))
			return
		}
		s.afterGrant(func(slot int, a remote.Answer) {
			stop(slot, time.Duration(float64(a.TTL)*oneOf(rnd, 0.5, 0.92, 1.0, 1.05, 1.5, 2.5)))
		})
	})
}

// afterGrant has something happen when somebody has been granted a lease.
func (s *schedule) afterGrant(f func(slot int, a remote.Answer)) {
	s.onGrant = func(p *Post, a remote.Answer) {
		for slot, m := range s.fleet {
			if m != nil && m.Instance == p.From && s.w.Now() < s.chaos {
				s.onGrant = nil
				f(slot, a)
			}
		}
	}
}

// deafen has no answer come back to one instance, right after a grant. It states
// at Redis what it holds, again and again and with another demand, keeps it for
// about as long as it may, and then uses it when all others use theirs.
func (s *schedule) deafen(rnd *rand.Rand) {
	s.times(rnd, 3, func() {
		s.afterGrant(func(slot int, a remote.Answer) {
			m := s.fleet[slot]
			d := time.Duration(float64(a.TTL) * oneOf(rnd, 0.3, 0.7, 0.85, 0.89, 0.95))
			s.diary.note("no answer reaches instance %d for %v", m.name, d)
			m.Deafen(true)
			end := s.w.Now() + d
			s.rest(rnd, m, s.w.Now(), end)
			lump := int(a.Lump / remote.Unit)
			more := min(s.largest(), lump+1) // than it has
			if rnd.IntN(2) == 0 {
				s.hasten(rnd, slot, lump, more)
			}
			for range 1 + rnd.IntN(3) {
				s.w.At(s.w.Now()+time.Duration(rnd.Float64()*rnd.Float64()*float64(d)), func() {
					for range 1 + rnd.IntN(12) {
						s.ask(slot, more, false, nil)
					}
				})
			}
			s.quiet = max(s.quiet, end+s.length(rnd))
			s.burst(rnd, end, 1.5, s.instances)
			s.w.At(s.quiet, func() { m.Deafen(false) })
		})
	})
}

// hasten has a member use a part of its lump within a moment and then ask for more:
// with so much demand its leases become shorter than the one that it has.
func (s *schedule) hasten(rnd *rand.Rand, slot, lump, more int) {
	at := s.w.Now()
	for range min(4+rnd.IntN(8), lump*2/3) {
		at += time.Duration(rnd.Int64N(int64(10 * time.Millisecond)))
		s.w.At(at, func() { s.ask(slot, 1, false, nil) })
	}
	s.w.At(at+time.Millisecond, func() { s.ask(slot, more, false, nil) })
}

// rest has the load leave one member alone for a while, or, so that the root fills
// up, everybody: but for a token now and then, so that the root notices what ends.
func (s *schedule) rest(rnd *rand.Rand, m *member, from, to time.Duration) {
	if rnd.IntN(3) > 0 {
		s.w.At(from, func() { s.allRest = true })
		s.w.At(to, func() { s.allRest = false })
		for k := range time.Duration(12) {
			slot := rnd.IntN(s.instances)
			s.w.At(from+(to-from)*(k+1)/12, func() {
				if other := s.fleet[slot]; other != m {
					s.ask(slot, 1, false, nil)
				}
			})
		}
	}
	s.w.At(from, func() { m.resting = true })
	s.w.At(to, func() { m.resting = false })
}

// hold keeps a message back until others of its sender have overtaken it, or until
// the lease that it is about has ended. Then its sender rests, so that the root
// fills up beside what it holds.
func (s *schedule) hold(rnd *rand.Rand) {
	s.times(rnd, 3, func() {
		kind := rnd.IntN(4)
		s.w.Holding = func(p *Post) time.Duration {
			m := p.Message
			switch {
			case kind == 0 && (m.Want == 0 || m.Kept > 0), kind == 1 && m.Returned == 0,
				kind == 2 && (m.Want > 0 || m.Kept > 0), s.w.Now() >= s.chaos:
				return 0
			}
			s.w.Holding = nil
			d := oneOf(rnd, span(rnd, s.timeout, 4*s.timeout), span(rnd, s.lease/4, 2*s.lease))
			s.diary.note("message %d of %s is held for %v", m.Seq, p.From.holder, d)
			sender := s.of(p.From)
			rest := s.w.Now() + d
			end := rest + time.Duration(float64(m.TTL)*oneOf(rnd, 0.2, 0.5, 0.8))
			s.quiet = max(s.quiet, end)
			if rnd.IntN(2) == 0 {
				s.burst(rnd, rest, 1, s.instances)
			}
			s.rest(rnd, sender, rest, end)
			if rnd.IntN(2) == 0 { // it cannot set right what that message did
				s.w.At(rest+2*s.timeout/3, func() { sender.Cut(true) })
				s.w.At(end, func() { sender.Cut(false) })
			}
			s.burst(rnd, end, 1.5, s.instances)
			return d
		}
	})
}
