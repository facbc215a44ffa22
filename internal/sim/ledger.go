package sim

import (
	"math"
	"time"
)

// A Ledger keeps what was admitted, and compares it with one bucket.
type Ledger struct {
	// Admitted tokens so far.
	Admitted int64
	// WorstWindow is the most that was admitted within one second.
	WorstWindow int64
	// Bins are the tokens admitted in each BinWidth.
	Bins []int64

	rate  float64 // tokens per nanosecond
	last  int64
	level float64 // of the leaky bucket that all admissions fall into
	worst float64

	recent []admission // of the last second
	head   int
	inside int64
}

type admission struct {
	at int64
	n  int64
}

// BinWidth is the width of the bins of a Ledger.
const BinWidth = 100 * time.Millisecond

// NewLedger returns an empty ledger for a rate in tokens per second.
func NewLedger(perSecond float64) *Ledger { return &Ledger{rate: perSecond / 1e9} }

// Admit notes n tokens admitted at a time, no earlier than the last.
func (l *Ledger) Admit(at time.Duration, n int64) {
	now := int64(at)
	l.drain(now)
	l.level += float64(n)
	l.worst = math.Max(l.worst, l.level)
	l.Admitted += n

	for bin := int(at / BinWidth); len(l.Bins) <= bin; {
		l.Bins = append(l.Bins, 0)
	}
	l.Bins[at/BinWidth] += n

	for l.head < len(l.recent) && l.recent[l.head].at <= now-int64(time.Second) {
		l.inside -= l.recent[l.head].n
		l.head++
	}
	if l.head > len(l.recent)/2 && l.head > 1024 {
		l.recent = append(l.recent[:0], l.recent[l.head:]...)
		l.head = 0
	}
	l.recent = append(l.recent, admission{now, n})
	l.inside += n
	l.WorstWindow = max(l.WorstWindow, l.inside)
}

func (l *Ledger) drain(now int64) {
	l.level = math.Max(0, l.level-float64(now-l.last)*l.rate)
	l.last = now
}

// SetRate changes the rate from a time on.
func (l *Ledger) SetRate(at time.Duration, perSecond float64) {
	l.drain(int64(at))
	l.rate = perSecond / 1e9
}

// Worst is the most by which the tokens admitted in any window, of whatever
// length, exceeded what the rate was worth in it. One bucket stays at its burst or
// below.
func (l *Ledger) Worst() float64 { return l.worst }

// A Bucket is one bucket that decides each request by itself: what a fleet is
// compared with.
type Bucket struct {
	rate, burst, level float64
	last               int64
	Admitted           int64
}

// NewBucket returns a full one.
func NewBucket(perSecond, burst float64) *Bucket {
	return &Bucket{rate: perSecond / 1e9, burst: burst, level: burst}
}

// Take decides a request of n tokens.
func (b *Bucket) Take(at time.Duration, n int64) bool {
	b.level = math.Min(b.burst, b.level+float64(int64(at)-b.last)*b.rate)
	b.last = int64(at)
	if b.level < float64(n) {
		return false
	}
	b.level -= float64(n)
	b.Admitted += n
	return true
}
