package e2e

import (
	"math"
	"slices"
	"testing"

	"github.com/resilient-go/limiter/hybrid"
)

// check compares what a limiter counted with what its callers wrote down, and
// where its permits are.
func (a StormAnswer) check(t *testing.T, who string, front int, records []record) {
	t.Helper()
	allowed, refused, spent := map[hybrid.Source]uint64{}, map[hybrid.Source]uint64{}, uint64(0)
	for _, r := range records {
		switch {
		case int(r.Front) != front:
		case !r.Allowed:
			refused[r.Source]++
		default:
			allowed[r.Source]++
			if r.Source == hybrid.SourceLease {
				spent += uint64(r.N)
			}
		}
	}
	for src := hybrid.SourcePrefilter; src <= hybrid.SourceDegraded; src++ {
		if a.Stats.Allowed[src] != allowed[src] || a.Stats.Refused[src] != refused[src] {
			t.Errorf("%s: Stats of %v tell %d allowed and %d refused, the callers %d and %d", who, src,
				a.Stats.Allowed[src], a.Stats.Refused[src], allowed[src], refused[src])
		}
	}
	if found := spent + a.Stats.TokensReturned + a.Stats.TokensExpired + uint64(a.Left); a.Stats.TokensGranted != found {
		t.Errorf("%s: %d permits were granted; %d spent, %d returned, %d expired and %d left behind", who,
			a.Stats.TokensGranted, spent, a.Stats.TokensReturned, a.Stats.TokensExpired, a.Left)
	}
	if a.Error != "" || a.Stats.Waiting != 0 {
		t.Errorf("%s: Close: %q, %d wait", who, a.Error, a.Stats.Waiting)
	}
}

// books reads what all workers wrote, holds it against the limits and tells of it.
// It reports whether that was worth anything.
func (s *storm) books() bool {
	type line struct{ front, key int }
	var (
		within   = map[line][]Call{}             // by leases and by Redis
		outside  = map[line][]Call{}             // by the outage policy
		parts    = map[line]int{}                // workers of which the latter are
		decided  = map[hybrid.Source][2]uint64{} // allowed, refused
		windows  float64
		silent   int
		requests int
	)
	for i, w := range s.all {
		records, errors := readStory(s.t, w.story)
		if errors != "" {
			s.t.Errorf("worker number %d had errors:\n%s", i, errors)
		}
		if w.killed && w.stderr.Len() > 0 { // of the others it is known when they end
			s.t.Errorf("worker number %d said before it was killed:\n%s", i, &w.stderr)
		}
		if len(records) == 0 {
			silent++
		}
		requests += len(records)
		own := map[line][]Call{}
		for _, r := range records {
			d := decided[r.Source]
			at := line{int(r.Front), int(r.Key)}
			switch {
			case !r.Allowed:
				d[1]++
			case r.Source == hybrid.SourceDegraded:
				d[0]++
				own[at] = append(own[at], r.call())
			case r.Source == hybrid.SourceLease || r.Source == hybrid.SourceRedis:
				d[0]++
				within[at] = append(within[at], r.call())
			default:
				s.t.Errorf("worker number %d: admitted by %v: %+v", i, r.Source, r)
			}
			decided[r.Source] = d
		}
		for at, calls := range own {
			// Its part is a matter of who else is there and of what was asked for.
			if x := excess(calls, s.limits[at.front], 1); x > rounding {
				s.t.Errorf("worker number %d, front %d, key %d: the outage policy admitted %.3f tokens too many in one window", i, at.front, at.key, x)
			}
			outside[at] = append(outside[at], calls...)
			parts[at]++
		}
	}

	worst, nearest := slices.Repeat([]float64{math.Inf(-1)}, len(s.fronts)), math.Inf(-1)
	for at, calls := range within {
		x := excess(calls, s.limits[at.front], 1)
		if x > rounding {
			s.t.Errorf("front %d, key %d: leases and Redis admitted %.3f tokens too many in one window", at.front, at.key, x)
		}
		worst[at.front] = max(worst[at.front], x)
		nearest = max(nearest, x/float64(s.limits[at.front].Burst()))
		windows += pairs(calls)
	}
	for at, calls := range outside {
		// Who has nothing of the limit may have one token now and then.
		if x := excess(calls, s.limits[at.front], 1) - float64(parts[at]); x > rounding {
			s.t.Errorf("front %d, key %d: the outage policy admitted %.3f tokens too many in all workers", at.front, at.key, x)
		}
		windows += pairs(calls)
	}

	s.t.Logf("%d decisions; allowed and refused by source: %v", requests, decided)
	s.t.Logf("%d kills, %d stops, %d events in all; %d of %d workers died without a word", s.kills, s.stops, len(s.diary), silent, len(s.all))
	s.t.Logf("%.3g windows; the worst by front, less burst + rate·w: %.3f tokens", windows, worst)
	return s.enough(decided, nearest)
}

// pairs is how many windows begin with one call and end with another, or with the
// same.
func pairs(calls []Call) float64 { return float64(len(calls)) * float64(len(calls)+1) / 2 }

// enough reports whether there were faults, requests of all kinds, and a limit that
// was used up. Nearest is how close the nearest window came to it, in bursts.
func (s *storm) enough(decided map[hybrid.Source][2]uint64, nearest float64) bool {
	for _, src := range []hybrid.Source{hybrid.SourceLease, hybrid.SourceRedis, hybrid.SourceDegraded} {
		if decided[src][0] < 20 {
			return false
		}
	}
	return s.kills > 0 && s.stops > 0 && nearest > -0.5
}
