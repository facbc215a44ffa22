package sim

import (
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/remote"
)

// Chance seldom brings about the few situations in which the rules of a lease cost
// something when they are broken. Here they are brought about, and the same is
// checked as in all schedules: above all that what is held and what the root has is
// the burst at most. The root gains more than is asked for, and is full.
func TestTraps(t *testing.T) {
	for name, spring := range map[string]func(*schedule) (sprung *bool){
		"a shorter lease whose answer is lost": shorter,
		"a message from before the lease":      before,
		"an end beside one that stands still":  beside,
	} {
		t.Run(name, func(t *testing.T) {
			p := &plan{
				seed: 1, instances: 12, limit: hybrid.PerMinute(60_000).WithBurst(400), usual: 1, calls: 1000,
				horizon: hybrid.DefaultLeaseHorizon, timeout: 50 * time.Millisecond, share: 1, headroom: 1,
				rtt: time.Millisecond, lease: 5 * time.Second, chaos: time.Minute,
			}
			s := newSchedule(p, nil)
			for slot := range s.fleet {
				s.start(slot, 0)
			}
			// Who asks once in 5 s has no lease: it shows the root every half of a second.
			for slot := 3; slot < s.instances; slot++ {
				s.steadily(slot, time.Duration(slot)*550*time.Millisecond, time.Minute, 5*time.Second)
			}
			sprung := spring(s)
			s.w.Run(time.Minute)
			for _, fault := range s.faults {
				t.Error(fault)
			}
			if !*sprung {
				t.Error("the situation did not come about")
			}
		})
	}
}

// steadily has a slot ask for a token each time.
func (s *schedule) steadily(slot int, from, to, each time.Duration) {
	for at := from; at < to; at += each {
		s.w.At(at, func() { s.ask(slot, 1, false, nil) })
	}
}

// scripts has something look at each message that has run, once the usual checks are
// done.
func (s *schedule) scripts(look func(*Post)) {
	s.w.Scripted = func(p *Post) {
		s.scripted(p)
		look(p)
	}
}

// shorter: a holder with little demand has a long lease. Its demand grows, so that it
// states with a shorter one what it holds. It hears nothing of that, stands still, and
// goes by the end that it knows.
func shorter(s *schedule) *bool {
	sprung := new(bool)
	s.steadily(0, 0, 20*time.Second, time.Second)
	s.w.At(15*time.Second, func() {
		s.afterGrant(func(slot int, a remote.Answer) {
			s.fleet[slot].Deafen(true)
			lump := int(a.Lump / remote.Unit)
			for range lump / 2 {
				s.ask(slot, 1, false, nil)
			}
			for k := range 4 { // more than it has, again and again
				s.w.At(s.w.Now()+time.Duration(60*k+1)*time.Millisecond, func() { s.ask(slot, lump+1, false, nil) })
			}
			ends := s.w.Now() + a.TTL
			s.scripts(func(p *Post) {
				m := p.Message
				if p.From == s.fleet[slot].Instance && m.Kept > 0 && s.w.Now()+m.TTL < ends-5*time.Second && !*sprung {
					*sprung = true
					s.fleet[slot].Pause(time.Minute)
				}
			})
		})
	})
	return sprung
}

// before: the first message of a holder arrives when it has long been given a lease.
// It cannot set right what that does, since it is cut off.
func before(s *schedule) *bool {
	sprung := new(bool)
	var first *Post
	s.w.Holding = func(p *Post) time.Duration {
		if first != nil || p.From != s.fleet[0].Instance {
			return 0
		}
		first = p
		return 3 * time.Second
	}
	s.steadily(0, 0, 3*time.Second, 100*time.Millisecond)
	s.steadily(1, 0, 10*time.Second, 300*time.Millisecond)
	s.scripts(func(p *Post) {
		if p == first {
			s.fleet[0].Cut(true)
			*sprung = s.rich.holds(s.fleet[0]) > 0
			for k := range time.Duration(3) { // more than anybody holds: the root is looked at
				s.w.At(s.w.Now()+(k+1)*60*time.Millisecond, func() { s.ask(1, 30, false, nil) })
			}
		}
	})
	return sprung
}

// beside: one holder dies, and another one stands still with a lease that goes on
// when that of the first one ends.
func beside(s *schedule) *bool {
	sprung := new(bool)
	s.steadily(2, 0, 8*time.Second, time.Second)
	s.w.At(8*time.Second, func() { s.kill(2) })
	s.steadily(0, 0, 25*time.Second, time.Second)
	s.w.At(11*time.Second, func() {
		m := s.fleet[0]
		s.afterGrant(func(slot int, a remote.Answer) {
			if slot == 0 {
				m.Pause(2 * a.TTL)
			}
		})
	})
	leases := 0
	s.scripts(func(*Post) {
		now := 0
		for name := range s.rootNow().fields {
			if name[0] == 'h' {
				now++
			}
		}
		*sprung = *sprung || now < leases && s.rich.holds(s.fleet[0]) > 0 && s.w.Now() > 13*time.Second
		leases = now
	})
	return sprung
}
