package sim

import (
	"time"

	"github.com/resilient-go/limiter/internal/inside"
	"github.com/resilient-go/limiter/remote"
)

// A wealth is what is there to be spent: at the root, at the holders, and under way
// between them. All of it is known here, so no load has to spend it before an error
// shows. After each script
//
//   - what the root has and what the holders have is the burst at most,
//   - what has been admitted and what may yet be has grown by no more than the rate
//     since any script before.
//
// The bound for all windows follows. Of limits that change, and while a lost state
// or a step of the clock has its consequences, only the windows are checked.
type wealth struct {
	s       *schedule
	flying  map[*Post]bool // messages and answers under way
	exempt  time.Duration  // until then a fault gives something away
	started bool
	last    time.Duration
	sum     float64 // micro-tokens, when it was last looked at
	level   float64 // how much faster than the rate it has grown, at most
}

func newWealth(s *schedule) *wealth {
	return &wealth{s: s, flying: map[*Post]bool{}}
}

// excuse suspends the check.
func (w *wealth) excuse(d time.Duration) {
	w.exempt, w.started = max(w.exempt, w.s.w.Now()+d), false
}

func (w *wealth) check(r rootState, p *Post) {
	s, now := w.s, w.s.w.Now()
	if s.has(limits) || now <= w.exempt {
		w.started = false
		return
	}
	if r.stamp != s.redisMicros() { // the script refused an old message and changed nothing
		return
	}
	held, way := 0.0, 0.0
	for _, m := range s.fleet {
		if m != nil {
			have, comes := w.of(m)
			held, way = held+have, way+comes
		}
	}
	// Returned is spendable nowhere until it is back.
	for p := range w.flying {
		if p.Ran == 0 {
			way += float64(p.Message.Returned)
		}
	}
	rate := float64(r.num) / float64(r.den) // micro-tokens per microsecond
	slack := rate*2 + 100 + rate*w.ahead().Seconds()*1e6
	// What the requests of this message took was at the root until then. What its
	// sender makes up for the way came into the room that this left.
	gave, makesUp := granted(p), 0.0
	if gave > 0 {
		makesUp = rate / 1e3 * w.passed(s.of(p.From), p)
	}
	for _, given := range []float64{0, gave} {
		if has := max(0, r.tokens*1e6+given); held+has-float64(r.micro) > slack+min(given, makesUp) {
			s.wrong("%.6f tokens are held and the root has %.6f, of a burst of %.0f", held/1e6, has/1e6, r.burst)
		}
	}
	sum := float64(s.books.total)*1e6 + held + way + r.tokens*1e6
	s.diary.note("wealth: %d paid, held %.6f, way %.6f, root %.6f, level %.6f of %.6f", s.books.total, held/1e6, way/1e6, r.tokens, w.level/1e6, slack/1e6)
	if w.started {
		w.level = max(0, w.level+sum-w.sum-rate*float64(now-w.last)/1e3)
		if w.level > slack {
			s.wrong("%.6f tokens come from nowhere, of which %.6f may", w.level/1e6, slack/1e6)
			w.level = 0
		}
	}
	w.started, w.last, w.sum = true, now, sum
}

// ahead is by how much of the time fast clocks are ahead: since their last report, and
// in what they make up for the way of a message.
func (w *wealth) ahead() time.Duration {
	s := w.s
	if s.books.fast == 0 {
		return 0
	}
	gap, way := s.books.gap, s.books.longest/20
	for _, m := range s.fleet {
		if m != nil && m.last > 0 {
			gap = max(gap, s.w.Now()-m.last)
		}
	}
	if !s.has(pauses) { // else an answer may count that came long after the time-out
		way = min(way, s.timeout*6/5)
	}
	usable := time.Duration(0.9 * float64(s.books.longest) / (1 + s.books.fast))
	return time.Duration(s.books.fast*float64(min(gap, usable))) + way
}

// of is what a member may spend, and what was admitted for it by an answer that is
// under way.
func (w *wealth) of(m *member) (held, way float64) {
	h := inside.Held(m.Limiter, modelKey)
	for p := range w.flying {
		if p.From != m.Instance || p.Over {
			continue
		}
		if p.Ran == 0 {
			// Its lease may end meanwhile, and go on with the answer. So may one that is
			// full: it then makes up for the way up to the new burst.
			most := float64(h.Tokens*remote.Unit+h.Part) + float64(h.Rate)*w.passed(m, p)/1e9
			return float64(h.Worth), max(0, most-float64(h.Worth))
		}
		if a, err := p.Message.Decode(p.Reply); err == nil {
			return w.with(m, h, p, a), granted(p)
		}
	}
	if h.Paused { // no answer comes
		return min(float64(h.Worth), float64(h.Tokens*remote.Unit+h.Part)), 0
	}
	return float64(h.Worth), 0
}

// granted is what the requests of a message were granted.
func granted(p *Post) (micro float64) {
	if a, err := p.Message.Decode(p.Reply); err == nil {
		for i, g := range a.Granted {
			micro += float64(g * p.Message.Needs[i].Tokens)
		}
	}
	return micro
}

// with is what a member will have with an answer, if it comes now.
func (w *wealth) with(m *member, h inside.Holding, p *Post, a remote.Answer) float64 {
	if w.passed(m, p) >= 0.9*float64(a.TTL) {
		return 0 // while it stood still that has ended
	}
	next := max(0, h.Tokens+a.Lump/remote.Unit-p.Message.Kept/remote.Unit)
	part := h.Part
	if a.Lump/remote.Unit < p.Message.Kept/remote.Unit {
		part = 0
	}
	// It makes up for the way at the lower rate.
	earned := min(float64(min(h.Rate, a.Rate))*w.passed(m, p)/1e9, float64(max(0, a.Burst-a.Lump/remote.Unit*remote.Unit-part)))
	return float64(next*remote.Unit+part) + max(0, earned)
}

// passed is how long a message has been under way, on the clock of its sender.
func (w *wealth) passed(m *member, p *Post) float64 {
	return float64(w.s.w.now-int64(p.Sent)) * (1 + m.Drift)
}

// holds is what a member may spend, in micro-tokens.
func (w *wealth) holds(m *member) float64 {
	held, _ := w.of(m)
	return held
}
