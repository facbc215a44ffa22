package sim

import (
	"time"

	"github.com/resilient-go/limiter/internal/inside"
	"github.com/resilient-go/limiter/remote"
)

// The pace of package breaker, which lives in real time.
const (
	firstProbe  = 250 * time.Millisecond
	lastProbe   = 800 * time.Millisecond
	spread      = 0.2
	consecutive = 5
	patience    = 1.8 // time-outs without a word after which two that hung suffice
)

// A gate stands for the breaker of an instance: it opens at five failures in a
// row, or at two when nothing was heard for a while, and probes by a timer.
type gate struct {
	i      *Instance
	open   bool
	inRow  int
	quiet  int64 // since when nothing was heard
	pause  time.Duration
	opened uint64
}

func (g *gate) closed() bool { return !g.open }

// heard notes the outcome of a message sent at an instant.
func (g *gate) heard(sent int64, err error) {
	class := remote.ClassOf(err)
	if err == nil || class.KeyOnly() {
		g.inRow = 0
		return
	}
	if g.inRow++; g.inRow == 1 {
		g.quiet = sent
	}
	long := time.Duration(g.i.w.now-g.quiet) >= time.Duration(patience*float64(g.i.timeout))
	if !g.open && (g.inRow >= consecutive || g.inRow >= 2 && long) {
		g.open, g.pause = true, firstProbe
		g.opened++
		inside.BreakerChanged(g.i.Limiter)
		g.plan()
	}
}

func (g *gate) plan() {
	d := float64(g.pause) * (1 - spread + 2*spread*g.i.w.Rand.Float64())
	g.i.after(time.Duration(d), g.probe)
}

// probe asks whether Redis is there: a round trip without consequences.
func (g *gate) probe() {
	w, n := g.i.w, &g.i.w.Network
	there := n.Up && n.thaws <= w.now && !g.i.cut && !w.lost(n.LoseRequest) && !w.lost(n.LoseReply)
	trip := w.way() + w.way()
	if !there || trip > g.i.timeout {
		g.pause = min(2*g.pause, lastProbe)
		g.i.after(g.i.timeout, g.plan)
		return
	}
	g.i.after(trip, func() {
		g.open, g.inRow = false, 0
		inside.BreakerChanged(g.i.Limiter)
	})
}
