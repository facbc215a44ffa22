package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// Weights says how demand falls on n instances: "even", "zipf" (the k-th gets 1/k
// of what the first gets), a number (the exponent of such a law), or "90/10" (that
// much per cent on the first, the rest even on the others).
func Weights(skew string, n int) ([]float64, error) {
	w := make([]float64, n)
	exponent := 0.0
	switch skew {
	case "", "even":
	case "zipf":
		exponent = 1
	default:
		bad := fmt.Errorf("skew %q: want even, zipf, a Zipf exponent such as 1.2, or parts such as 90/10", skew)
		if one, others, ok := strings.Cut(skew, "/"); ok {
			first, rest := number(one), number(others)
			if !(first > 0 && rest >= 0) {
				return nil, bad
			}
			for k := range w {
				w[k] = rest / (first + rest) / math.Max(1, float64(n-1))
			}
			w[0] = first / (first + rest)
			return normal(w), nil
		}
		if exponent = number(skew); exponent < 0 {
			return nil, bad
		}
	}
	for k := range w {
		w[k] = math.Pow(float64(k+1), -exponent)
	}
	return normal(w), nil
}

// number is the number that a text says, at most a thousand; -1 if it says none.
func number(text string) float64 {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= 0 && x <= 1000) {
		return -1
	}
	return x
}

func normal(w []float64) []float64 {
	sum := 0.0
	for _, x := range w {
		sum += x
	}
	for k := range w {
		w[k] /= sum
	}
	return w
}

// picker draws an index by its weight in constant time: the alias method of
// Walker, in the form of Vose (1991).
type picker struct {
	part  []float64
	alias []int
}

func newPicker(weights []float64) *picker {
	n := len(weights)
	p := &picker{part: make([]float64, n), alias: make([]int, n)}
	var small, large []int
	scaled := make([]float64, n)
	for k, w := range weights {
		if scaled[k] = w * float64(n); scaled[k] < 1 {
			small = append(small, k)
		} else {
			large = append(large, k)
		}
	}
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		p.part[s], p.alias[s] = scaled[s], l
		if scaled[l] -= 1 - scaled[s]; scaled[l] < 1 {
			large = large[:len(large)-1]
			small = append(small, l)
		}
	}
	for _, k := range append(small, large...) {
		p.part[k], p.alias[k] = 1, k
	}
	return p
}

func (p *picker) pick(r *rand.Rand) int {
	k := r.IntN(len(p.part))
	if r.Float64() < p.part[k] {
		return k
	}
	return p.alias[k]
}

// demand is where and when requests arrive: at random (a Poisson process).
type demand struct {
	s       *Scenario
	r       *rand.Rand
	all     *picker
	halves  [2]*picker
	at      float64 // nanoseconds
	perNano float64
}

func newDemand(s *Scenario, weights []float64) *demand {
	d := &demand{
		s: s, r: rand.New(rand.NewPCG(s.Seed, 1)), all: newPicker(weights),
		perNano: s.Load * s.perSecond() / 1e9,
	}
	if s.Pulse > 0 {
		d.perNano *= 3 // all of it falls into a third of the time
	}
	if half := len(weights) / 2; s.Shift > 0 && half > 0 {
		d.halves = [2]*picker{newPicker(normal(append([]float64(nil), weights[:half]...))), newPicker(normal(append([]float64(nil), weights[half:]...)))}
	}
	return d
}

// next is when the next request arrives, and at which instance.
func (d *demand) next() (at time.Duration, instance int) {
	for {
		at, instance = d.any()
		if at >= d.s.Join || instance < d.s.Instances-1 {
			return at, instance
		}
	}
}

func (d *demand) any() (at time.Duration, instance int) {
	d.at += d.r.ExpFloat64() / d.perNano
	if d.s.Pulse > 0 {
		period := float64(d.s.Pulse) * 1.5
		if d.at-math.Floor(d.at/period)*period < float64(d.s.Pulse) {
			d.at = math.Floor(d.at/period)*period + float64(d.s.Pulse)
		}
	}
	at = time.Duration(d.at)
	if d.s.Shift == 0 || d.halves[0] == nil {
		return at, d.all.pick(d.r)
	}
	if at/d.s.Shift%2 == 0 {
		return at, d.halves[0].pick(d.r)
	}
	return at, len(d.halves[0].part) + d.halves[1].pick(d.r)
}
