package sim

import (
	"math/rand/v2"
	"time"
)

// load plans the requests of the time of faults: one phase after the other, each
// with its own demand. What shows a wrong right is that everybody uses all that he
// has at the same instant, so most phases end with a burst on all instances at
// once, many times before anything has been given back.
func (s *schedule) load() {
	rnd := stream(s.seed, "load")
	for at := time.Duration(0); at < s.chaos; {
		length := min(span(rnd, s.lease/8, 2*s.lease), s.chaos-at)
		if at == 0 {
			length = min(s.chaos, max(length, s.lease))
		}
		switch rnd.IntN(8) {
		case 0, 1, 2: // less than the limit
			s.poisson(rnd, at, at+length, 0.2+0.6*rnd.Float64(), s.weights(rnd))
		case 3, 4, 5: // more
			s.poisson(rnd, at, at+length, between(rnd, 1.2, 4), s.weights(rnd))
		case 6: // all on one
			w := make([]float64, s.instances)
			w[rnd.IntN(len(w))] = 1
			s.poisson(rnd, at, at+length, between(rnd, 0.5, 3), w)
		default: // silence
		}
		at += length
		switch rnd.IntN(6) {
		case 0:
		case 1: // what is idle has not yet been given back
			at += time.Duration(float64(s.horizon) * 0.5 * rnd.Float64())
			fallthrough
		default:
			s.burst(rnd, at, between(rnd, 0.5, 2.5), s.instances)
		}
	}
}

// weights is how demand falls on the slots.
func (s *schedule) weights(rnd *rand.Rand) []float64 {
	w := make([]float64, s.instances)
	for k := range w {
		w[k] = 1
		if s.seed%2 == 0 {
			w[k] = between(rnd, 0.05, 1)
		}
	}
	return normal(w)
}

// size draws a request.
func (s *schedule) size(rnd *rand.Rand) int {
	n := 1 + rnd.IntN(2*s.usual)
	if rnd.IntN(40) == 0 {
		n = 1 + rnd.IntN(s.largest())
	}
	return min(n, s.largest())
}

// poisson plans random arrivals at so many times the rate.
func (s *schedule) poisson(rnd *rand.Rand, from, to time.Duration, times float64, weights []float64) {
	pick := newPicker(weights)
	patient := oneOf(rnd, 0, 0, 0.05, 0.3)
	for at := float64(from); ; {
		at += rnd.ExpFloat64() / (times * s.calls) * 1e9
		if at >= float64(to) {
			return
		}
		slot, n, waits := pick.pick(rnd), s.size(rnd), rnd.Float64() < patient
		s.w.At(time.Duration(at), func() {
			if m := s.fleet[slot]; s.allRest || m != nil && m.resting {
				return
			} else if m != nil && m.Waiting() >= 3 {
				waits = false // a queue that only grows shows nothing
			}
			s.ask(slot, n, waits, nil)
		})
	}
}

// burst plans so many times the burst of the limit at one instant, on some of the
// slots, in requests as large as keeps them few.
func (s *schedule) burst(rnd *rand.Rand, at time.Duration, times float64, slots int) {
	order := rnd.Perm(s.instances)[:slots]
	each := times * float64(s.limit.Burst()) / float64(slots)
	size := max(1, min(s.usual, s.largest()), int(each/30))
	size = min(size, s.largest())
	again := rnd.IntN(3) == 0
	s.w.At(at, func() {
		s.diary.note("a burst of %.0f on each of %d slots", each, slots)
		for left := each; left > 0; left -= float64(size) {
			for _, slot := range order {
				if m := s.fleet[slot]; s.allRest || m != nil && m.resting {
					continue
				}
				s.ask(slot, size, false, nil)
				if again { // what is left over, to the last token
					s.ask(slot, 1, false, nil)
				}
			}
		}
	})
}
