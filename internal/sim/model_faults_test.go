package sim

import (
	"math/rand/v2"
	"time"
)

// faults plans the faults of each kind.
var faults = map[string]func(*schedule, *rand.Rand){
	crashes: (*schedule).crash,
	churn:   (*schedule).comeAndGo,
	pauses:  (*schedule).pause,
	noRequest: func(s *schedule, rnd *rand.Rand) {
		s.spells(rnd, "requests are lost", func(on bool) { s.w.Network.LoseRequest = chance(rnd, on) })
	},
	noReply: func(s *schedule, rnd *rand.Rand) {
		s.spells(rnd, "replies are lost", func(on bool) { s.w.Network.LoseReply = chance(rnd, on) })
	},
	late: func(s *schedule, rnd *rand.Rand) {
		s.spells(rnd, "messages are late", func(on bool) {
			s.w.Network.Delay = chance(rnd, on)
			s.w.Network.MaxDelay = span(rnd, s.timeout/2, 3*s.lease)
		})
	},
	overtaken: (*schedule).hold,
	cuts: func(s *schedule, rnd *rand.Rand) {
		slot := rnd.IntN(s.instances)
		s.spells(rnd, "a slot is cut off", func(on bool) {
			if on {
				slot = rnd.IntN(s.instances)
			}
			if m := s.fleet[slot]; m != nil {
				m.Cut(on)
			}
		})
	},
	deafness: (*schedule).deafen,
	outages: func(s *schedule, rnd *rand.Rand) {
		s.spells(rnd, "Redis is down", func(on bool) { s.w.Network.Up = !on })
	},
	freezes: func(s *schedule, rnd *rand.Rand) {
		s.times(rnd, 3, func() {
			d := s.length(rnd)
			s.diary.note("Redis stands still for %v", d)
			s.w.FreezeRedis(d)
		})
	},
	drift: func(*schedule, *rand.Rand) {}, // at the start of each
	forward: func(s *schedule, rnd *rand.Rand) {
		s.times(rnd, 2, func() { s.step(s.jump(rnd)) })
	},
	back: func(s *schedule, rnd *rand.Rand) {
		s.times(rnd, 2, func() { s.step(-s.jump(rnd)) })
	},
	loss:   (*schedule).lose,
	older:  (*schedule).goBack,
	limits: (*schedule).otherLimits,
}

func chance(rnd *rand.Rand, on bool) float64 {
	if !on {
		return 0
	}
	return oneOf(rnd, 0.1, 0.4, 1)
}

// length draws how long a fault lasts: about a time-out, a part of a lease, or more
// than one.
func (s *schedule) length(rnd *rand.Rand) time.Duration {
	lease := oneOf(rnd, s.lease, max(500*time.Millisecond, 5*s.horizon))
	return oneOf(rnd, span(rnd, s.timeout/2, 4*s.timeout), span(rnd, lease/10, lease), span(rnd, lease, 2*lease))
}

// jump draws how far the clock of Redis steps.
func (s *schedule) jump(rnd *rand.Rand) time.Duration {
	return oneOf(rnd, span(rnd, time.Microsecond, s.lease/2), span(rnd, s.lease/2, 3*s.lease), span(rnd, time.Minute, time.Hour))
}

// times has something happen up to so many times, but at least once.
func (s *schedule) times(rnd *rand.Rand, most int, f func()) {
	for range 1 + rnd.IntN(most) {
		s.w.At(time.Duration(rnd.Int64N(int64(s.chaos))), func() {
			if s.w.Now() < s.chaos {
				f()
			}
		})
	}
}

// spells has something go on for a while, up to three times.
func (s *schedule) spells(rnd *rand.Rand, what string, set func(on bool)) {
	at := time.Duration(0)
	for range 1 + rnd.IntN(3) {
		from := at + time.Duration(rnd.Int64N(int64(s.chaos)/2))
		to := from + s.length(rnd)
		at = to
		if from >= s.chaos {
			return
		}
		s.w.At(from, func() {
			s.diary.note("from now on %s", what)
			set(true)
		})
		s.w.At(to, func() {
			s.diary.note("no longer: %s", what)
			set(false)
		})
		s.quiet = max(s.quiet, to)
	}
}

func (s *schedule) crash(rnd *rand.Rand) {
	drifts := stream(s.seed, "drift of those who come later")
	s.times(rnd, 3, func() {
		slot, after := rnd.IntN(s.instances), s.length(rnd)*time.Duration(rnd.IntN(2))
		s.kill(slot)
		s.quiet = max(s.quiet, s.w.Now()+after)
		s.w.At(s.w.Now()+after, func() {
			if s.fleet[slot] == nil {
				s.start(slot, s.anyDrift(drifts))
			}
		})
	})
}

func (s *schedule) comeAndGo(rnd *rand.Rand) {
	s.times(rnd, 6, func() {
		if slot := rnd.IntN(s.instances); s.fleet[slot] == nil {
			s.start(slot, s.anyDrift(rnd))
		} else {
			s.kill(slot)
		}
	})
}

// mend ends all faults that have not ended by themselves.
func (s *schedule) mend() {
	s.onGrant = nil
	s.w.At(s.quiet, func() {})
	s.w.Run(max(s.quiet, time.Duration(s.w.Network.thaws)))
	n := &s.w.Network
	n.Up, n.LoseRequest, n.LoseReply, n.Delay = true, 0, 0, 0
	s.diary.note("all faults are over")
	for slot, m := range s.fleet {
		if m == nil {
			s.start(slot, 0)
		} else {
			m.Cut(false)
			m.Deafen(false)
		}
	}
	s.limitEverywhere()
}
