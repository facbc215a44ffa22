package sim

import (
	"fmt"

	"github.com/resilient-go/limiter/internal/inside"
)

// A diary is what happened, in order, for somebody to read. A nil diary takes no
// notes.
type diary struct {
	w     *World
	lines []string
}

// mostLines is what anybody reads of a diary.
const mostLines = 20_000

func (d *diary) note(format string, args ...any) {
	if d == nil || len(d.lines) >= mostLines {
		return
	}
	d.lines = append(d.lines, fmt.Sprintf("%12v: "+format, append([]any{d.w.Now()}, args...)...))
}

// post notes a message: what it said, what the script answered or what became of
// it otherwise.
func (d *diary) post(p *Post, err error) {
	if d == nil {
		return
	}
	m := p.Message
	said := fmt.Sprintf("%s message %d: kept %d, returned %d, spent %d, demand %d, want %d, rate %d, needs %v",
		p.From.holder, m.Seq, m.Kept, m.Returned, m.Spent, m.Demand, m.Want, m.Rate, m.Needs)
	switch {
	case p.Lost != "":
		d.note("%s (sent %v): %s", said, p.Sent, p.Lost)
	case err != nil:
		d.note("%s (sent %v): %v", said, p.Sent, err)
	case d.w.Now() == p.Ran:
		d.note("%s (sent %v) -> %v %v", said, p.Sent, p.Reply, p.Err)
	default:
		d.note("%s message %d: the answer is there", p.From.holder, m.Seq)
	}
}

func (d *diary) decision(m *member, n int64, patient bool, decision inside.Decision) {
	if d == nil {
		return
	}
	d.note("instance %d: %d (patient: %v): %v by %s, again in %v %v", m.name, n, patient,
		decision.Allowed, decision.Source, decision.RetryAfter, decision.Err)
}
