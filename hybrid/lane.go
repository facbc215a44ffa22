package hybrid

import (
	"sync/atomic"
	"time"

	"github.com/resilient-go/limiter/breaker"
	"github.com/resilient-go/limiter/local"
	"github.com/resilient-go/limiter/remote"
)

// A lane is the way to one master: the calls under way, and whether any may be made.
// A limiter has one, and on a Cluster one for each master, so that a master that is
// lost takes only its own keys with it.
type lane struct {
	l       *Limiter
	node    string // address of the master; "": the only one, or not known yet
	root    root
	gate    gate
	suspect atomic.Pointer[string] // a key, in Redis, that failed here, or the first one

	outage           outage
	allowed, refused atomic.Uint64 // decisions of the outage policy
	cautious         atomic.Int64  // instant until which keys take no more than in the last outage
}

// newLane makes the lane of a master; key is one of its keys.
func (l *Limiter) newLane(node, key string) *lane {
	a := &lane{l: l, node: node}
	a.suspect.Store(&key)
	c := breaker.Config{
		Judge:     a.judge,
		Probe:     a.probe,
		SlowAfter: l.cfg.timeout * 3 / 4,
		Patience:  l.cfg.timeout * 9 / 5,
		Notify:    a.breakerChanged,
	}
	if l.lanes.masters != nil {
		c.Early = a.moved
	}
	guard := breaker.New(c)
	a.gate = guard
	a.root = remote.New(l.rdb, remote.Config{
		Algorithm: l.cfg.scripts(),
		Tiers:     l.cfg.remoteTiers(),
		Holder:    l.holder,
		Timeout:   l.cfg.timeout,
		Guard:     guard.Do,
		Observe:   l.counts.observe,
	})
	return a
}

// root is where messages go: a [remote.Client].
type root interface {
	Acquire(m *remote.Message, done func(remote.Answer, error)) error
	Peek(key string, limit remote.Limit, done func(remote.Level, error)) error
	Reset(key string, limit remote.Limit, done func(remote.Level, error)) error
	Announce(name string, window time.Duration, leaves bool, done func(remote.Fleet, error)) error
	Probe(m *remote.Message) error
	Bodies() uint64
	Close() (stuck int)
}

// gate says whether the root may be asked: a [breaker.Breaker].
type gate interface {
	Closed() bool
	State() breaker.State
	Close()
}

// up reports whether the master may be asked.
func (a *lane) up() bool { return a.gate.Closed() && !a.l.drill.on.Load() }

// failed notes that a call for a key failed. A fault of one key says nothing about
// the others.
func (a *lane) failed(key string, err error) {
	if remote.ClassOf(err).KeyOnly() {
		return
	}
	a.suspect.Store(&key)
	a.l.lanes.reload()
}

// moved reports whether a key that suffered has another master by now. Then all have
// that had the same one: there is nothing to wait for here.
func (a *lane) moved() bool {
	a.l.lanes.reload()
	return a.l.lanes.masterOf(*a.suspect.Load()) != a.node
}

// probe makes one real call for a key that suffered.
func (a *lane) probe() error {
	if a.moved() {
		return nil
	}
	return a.root.Probe(&remote.Message{Key: *a.suspect.Load(), Limit: a.l.probed()})
}

// probed is a limit for a probe: it has to pass the scripts and changes nothing.
func (l *Limiter) probed() remote.Limit {
	if t := l.terms.Load(); !t.fixed() {
		return t.remote()
	}
	return remote.Limit{Num: 1, Den: 1, Burst: local.Unit}
}

// judge tells the breaker what an outcome says about Redis: a denial or a fault
// of one key is an answer like any other. What Close cuts short says nothing.
func (a *lane) judge(err error) breaker.Verdict {
	switch class := remote.ClassOf(err); {
	case class == remote.Closed && a.l.closed.Load():
		return breaker.Ignored
	case class == remote.None, class.KeyOnly():
		return breaker.Healthy
	case class == remote.Timeout, class == remote.Saturated:
		return breaker.Hung
	case class.Misconfigured() && class != remote.Protocol:
		return breaker.Fatal
	default:
		return breaker.Failed
	}
}
