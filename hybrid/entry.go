package hybrid

import (
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/resilient-go/limiter/local"
	"github.com/resilient-go/limiter/remote"
)

// An entry is what this instance knows of one key.
//
// The lease, leased and hint may be used by anybody; all else belongs to mu.
// Nothing blocks while mu is held: messages are handed to the remote client,
// which answers on a goroutine of its own.
type entry struct {
	lease  local.Lease
	leased atomic.Uint64 // permits spent from the lease without taking mu
	hint   atomic.Int64  // whole tokens at the root when it was last heard of

	mu      sync.Mutex
	key     string // in Redis
	tracked bool   // it is in the table; others live for one request
	dead    bool   // it was retired: look the key up again

	queue  []*waiter // who waits for a decision, in order of arrival
	queued int       // how many of those, and of those in flight, are patient
	flight *flight   // the message under way, nil if there is none
	timer  *time.Timer

	root   rootView
	share  *local.Share // nil: the whole limit
	demand local.Demand
	ramp   int64  // the largest lump to ask for: doubles from message to message
	asked  int64  // tokens asked for otherwise than from the lease since the last
	calls  int64  // message, and in how many calls
	passed uint64 // leased when the last message was sent
	active int64  // when something was last asked, for the sweeper
	seen   uint64

	badUntil int64 // the key is at fault, not Redis: it is degraded until this instant

	own      fallback
	fallback *fallback
}

// rootView is the root as it was last told.
type rootView struct {
	known   bool
	tokens  int64 // micro-tokens
	out     int64
	lastEnd int64 // instant
	at      int64 // instant: the script ran no earlier,
	told    int64 // and no later than this one
	rates   int64 // micro-tokens per second that the leases earn by themselves
	until   int64 // the root said no: nobody asks again before this instant
}

func newRootView(level remote.Level, sent, now int64) rootView {
	return rootView{
		known: true, tokens: level.Tokens, out: level.Out, rates: level.Rates,
		lastEnd: now + int64(level.LastEnd), at: sent, told: now,
	}
}

func (l *Limiter) newEntry(key string, tracked bool) *entry {
	e := &entry{key: remote.Key(l.cfg.name, key), tracked: tracked}
	e.hint.Store(l.units.burst)
	if l.cfg.share < 1 && tracked {
		s := local.NewShare(l.cfg.share*l.units.rate.PerSecond(), l.cfg.share*float64(l.units.burst), l.now())
		e.share = &s
	}
	e.fallback = &e.own
	if !tracked {
		e.fallback = &l.spill[l.keys.Bucket(key, len(l.spill))]
	}
	e.own.limiter = l
	return e
}

// note counts a request into the demand of the key.
func (e *entry) note(n int64) {
	e.asked += n
	e.calls++
}

// lock finds or makes the entry of a key and locks it.
func (l *Limiter) lock(key string) *entry {
	for {
		e, ok := l.keys.GetOrAdd(key, func() *entry { return l.newEntry(key, true) })
		if !ok {
			l.counts.untracked.Add(1)
			e = l.newEntry(key, false)
		}
		e.mu.Lock()
		if !e.dead {
			return e
		}
		e.mu.Unlock()
	}
}

// Retire implements [local.Entry]: an entry goes if nothing is going on and
// forgetting it gives nothing away. Its lease is returned first.
func (e *entry) Retire() bool {
	if !e.mu.TryLock() {
		return false
	}
	defer e.mu.Unlock()
	l := e.own.limiter
	now := l.now()
	if l.closed.Load() || e.flight != nil || len(e.queue) > 0 || !e.own.full(l, e, now) {
		return false
	}
	if e.share != nil {
		e.share.Advance(now)
		e.share.Hold(e.lease.Rights(now))
		if !e.share.Full() {
			return false
		}
	}
	e.dead = true
	e.stopTimer()
	l.giveBack(e, now)
	l.counts.leasedByEvicted.Add(e.leased.Load())
	return true
}

// bound is the most that the root can hold at now, in micro-tokens, unless
// somebody returned tokens or the bucket was reset.
func (e *entry) bound(l *Limiter, now int64) float64 {
	full := float64(l.units.burst * local.Unit)
	if !e.root.known {
		return full
	}
	elapsed := time.Duration(now - e.root.at)
	net := l.units.rate.In(elapsed) - float64(e.root.rates)*elapsed.Seconds()
	return math.Min(full, float64(e.root.tokens)+math.Max(0, net))
}

// hush notes that the root said no to n tokens, and for how long nobody need
// ask: a horizon at most, spread so that instances do not ask together.
func (l *Limiter) hush(e *entry, n, now int64) {
	longest := float64(l.cfg.horizon) * (1 - denialsSpread*rand.Float64())
	e.root.until = now + min(int64(l.retryAfter(&e.root, n, now)), int64(longest))
}

// retryAfter is how long n tokens take at the root as it was last told: until
// it has them, or, where leases leave too little room, until those end.
func (l *Limiter) retryAfter(root *rootView, n, now int64) time.Duration {
	missing := n*local.Unit - root.tokens
	d := l.timeFor(missing)
	if left := root.lastEnd - root.told; root.rates > 0 && missing > 0 && left > 0 {
		// Until the leases end the root gains only what they leave.
		net := l.units.rate.PerSecond() - float64(root.rates)/local.Unit // tokens per second
		gained := int64(math.Max(0, net) * float64(left) / 1e9 * local.Unit)
		if missing <= gained {
			d = time.Duration(math.Ceil(float64(missing) / local.Unit / net * 1e9))
		} else {
			d = time.Duration(left) + l.timeFor(missing-gained)
		}
	}
	if short := n*local.Unit - (l.units.burst*local.Unit - root.out); short > 0 && root.out > 0 {
		d = max(d, time.Duration(root.lastEnd-root.told)+l.timeFor(short))
	}
	if root.out > 0 || root.rates > 0 {
		d = l.metered(d)
	}
	return max(1, d-time.Duration(now-root.told))
}

// timeFor is how long that many micro-tokens take at Redis, which counts whole
// microseconds.
func (l *Limiter) timeFor(micro int64) time.Duration {
	d := l.units.rate.TimeFor(micro)
	return d + (time.Microsecond-d%time.Microsecond)%time.Microsecond
}

// refuse makes a refusal.
func (l *Limiter) refuse(src Source, remaining int64, retry time.Duration) Result {
	r := l.result(src, remaining)
	r.RetryAfter = max(1, retry)
	return r
}

// allow makes an admission.
func (l *Limiter) allow(src Source, remaining int64) Result {
	r := l.result(src, remaining)
	r.Allowed = true
	return r
}

func (l *Limiter) result(src Source, remaining int64) Result {
	remaining = max(0, min(remaining, l.units.burst))
	return Result{
		Source: src, Limit: l.limit, Remaining: int(remaining),
		ResetAfter: l.units.rate.TimeFor((l.units.burst - remaining) * local.Unit),
	}
}
