package hybrid

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/resilient-go/limiter/lua"
	"github.com/resilient-go/limiter/remote"
)

// Stats are counters since the limiter was made, and what it is like now.
type Stats struct {
	// Allowed and Refused count decisions by source.
	Allowed, Refused map[Source]uint64

	// RedisCalls counts script calls that were sent, by class of their outcome:
	// "none" is success. RedisCallsByOperation tells them apart by script as well,
	// "acquire", "peek", "reset" and "announce", and RedisSeconds is how long each took.
	RedisCalls            map[string]uint64
	RedisCallsByOperation map[string]map[string]uint64
	RedisSeconds          map[string]Histogram
	// Scripts is how often the body of a script was sent, because a server did not
	// know it.
	Scripts uint64

	// Grants counts leases granted or renewed with tokens; the rest are tokens:
	// granted on lease, spent from leases as Redis was told, given back, and ended
	// unspent.
	Grants, TokensGranted, TokensSpent, TokensReturned, TokensExpired uint64
	// TokensLost were charged at Redis, or may have been, for callers who did not
	// get them: the answer was lost or they had left.
	TokensLost uint64
	// TokensUnaccounted were used by reservations beyond what could be charged, see
	// [Reservation.Settle].
	TokensUnaccounted uint64

	// BucketLeft is which part of the burst was left when requests were decided, in
	// tenths: the first count is for nothing left. Decisions from a lease are put
	// down when it is renewed, with what was left then.
	BucketLeft Histogram
	// Shadowed counts refusals that were admitted all the same, see [WithShadow].
	Shadowed uint64
	// NearLimit counts [NearLimit] events, those that found no listener included.
	NearLimit uint64

	// Degraded reports whether the outage policy decides now, DegradedFor for how
	// long in all. On a Cluster it may be for the keys of some masters only, which
	// are MastersDegraded; their times are added up.
	Degraded        bool
	DegradedFor     time.Duration
	MastersDegraded int
	// Breaker is "closed", "open" or "half-open": on a Cluster that of the worst master.
	Breaker string
	// Instances is the number that the limit is divided by in an outage, 0 if it is
	// not; InstancesAssumed: nobody said so.
	Instances        int
	InstancesAssumed bool
	// InstancesLive reached Redis when it was last asked, InstancesAge ago: 0 if it
	// never was. Instances is the most of lately, so that those that are cut off
	// are counted.
	InstancesLive int
	InstancesAge  time.Duration
	// StateLost counts buckets that were gone at Redis although they cannot have been
	// full: evicted, flushed, or left behind by a failover.
	StateLost uint64

	// Keys are remembered now, Evicted were forgotten for others, Untracked
	// requests found no room.
	Keys               int
	Evicted, Untracked uint64
	// Modes is how many of the keys are decided how, while Redis is well: "exact" by
	// Redis, for each batch of callers; "lump" from permits on lease; "rate" from a part
	// of the rate on lease. A key is counted as it was last told.
	Modes map[string]int
	// Waiting callers of Wait.
	Waiting int64

	// EventsDropped did not fit the queue, EventPanics were lost by the handler.
	EventsDropped, EventPanics uint64
}

// counts are the counters behind Stats, but for the permits spent from leases,
// which each key counts for itself.
type counts struct {
	allowed, refused [sources]atomic.Uint64
	calls            [len(operations)][remote.Classes]atomic.Uint64
	seconds          [len(operations)]durations
	left             lefts
	near             atomic.Uint64
	shadowed         atomic.Uint64
	stateLost        atomic.Uint64

	toldLeased, toldDenied, toldPrefiltered atomic.Uint64 // the most that was ever told
	spent                                   atomic.Uint64
	grants                                  atomic.Uint64
	granted                                 atomic.Uint64
	returned                                atomic.Uint64
	expired                                 atomic.Uint64
	lost                                    atomic.Uint64
	unaccounted                             atomic.Uint64
	untracked                               atomic.Uint64
	leasedByEvicted                         atomic.Uint64
	waiting                                 atomic.Int64
}

// operations are the scripts.
var operations = [...]string{lua.Acquire.Name(), lua.Peek.Name(), lua.Reset.Name(), lua.Announce.Name()}

// observe counts a call.
func (c *counts) observe(op string, took time.Duration, class remote.Class) {
	i := slices.Index(operations[:], op)
	c.calls[i][class].Add(1)
	c.seconds[i].observe(took)
}

// counter counts the decisions of a source about a key. Those of the outage policy
// belong to a lane.
func (l *Limiter) counter(e *entry, src Source, allowed bool) *atomic.Uint64 {
	switch {
	case src == SourceDegraded && allowed:
		return &e.lane.Load().allowed
	case src == SourceDegraded:
		return &e.lane.Load().refused
	case allowed:
		return &l.counts.allowed[src]
	default:
		return &l.counts.refused[src]
	}
}

// raise makes a counter that is told to others one that never falls.
func raise(told *atomic.Uint64, n uint64) uint64 {
	for {
		old := told.Load()
		if n <= old {
			return old
		}
		if told.CompareAndSwap(old, n) {
			return n
		}
	}
}

// mode is how requests for the key are decided.
func (e *entry) mode() string {
	switch {
	case e.lease.Rated():
		return "rate"
	case e.lease.Idle():
		return "exact"
	default:
		return "lump"
	}
}

// Stats returns the counters. It visits every key, so ask for it every few
// seconds and not on each request.
func (l *Limiter) Stats() Stats {
	c := &l.counts
	leased := c.allowed[SourceLease].Load() + c.leasedByEvicted.Load()
	var refused [sources]uint64 // before those of the keys are added: an entry that goes meanwhile is counted once
	for i := range refused {
		refused[i] = c.refused[i].Load()
	}
	modes := map[string]int{"exact": 0, "lump": 0, "rate": 0}
	l.keys.All(func(e *entry) {
		modes[e.mode()]++
		leased += e.served()
		refused[SourceDenied] += e.denied.Load()
		refused[SourcePrefilter] += e.prefiltered.Load()
	})
	s := Stats{
		Allowed: map[Source]uint64{}, Refused: map[Source]uint64{}, RedisCalls: map[string]uint64{},
		RedisCallsByOperation: map[string]map[string]uint64{}, RedisSeconds: map[string]Histogram{},
		Scripts: l.lanes.bodies(),
		Grants:  c.grants.Load(), TokensGranted: c.granted.Load(), TokensSpent: c.spent.Load(), TokensReturned: c.returned.Load(),
		TokensExpired: c.expired.Load(), TokensLost: c.lost.Load(), TokensUnaccounted: c.unaccounted.Load(),
		Breaker: l.lanes.breaker().String(), StateLost: c.stateLost.Load(),
		Keys: l.keys.Len(), Evicted: l.keys.Evicted(), Untracked: c.untracked.Load(),
		Modes: modes, Waiting: c.waiting.Load(),
	}
	for src := SourcePrefilter; int(src) < sources; src++ {
		s.Allowed[src] = c.allowed[src].Load()
		s.Refused[src] = refused[src]
	}
	// What the keys count themselves is missing while one is being forgotten.
	s.Allowed[SourceLease] = raise(&c.toldLeased, leased)
	s.Refused[SourceDenied] = raise(&c.toldDenied, refused[SourceDenied])
	s.Refused[SourcePrefilter] = raise(&c.toldPrefiltered, refused[SourcePrefilter])
	s.Instances, s.InstancesAssumed = l.instances()
	if h := l.members.known.Load(); h != nil {
		s.InstancesLive, s.InstancesAge = h.Live, time.Duration(l.now()-h.at)
	}
	s.BucketLeft, s.NearLimit, s.Shadowed = c.left.histogram(), c.near.Load(), c.shadowed.Load()
	for i, op := range operations {
		s.RedisCallsByOperation[op] = map[string]uint64{}
		s.RedisSeconds[op] = c.seconds[i].histogram()
		for class := range remote.Class(remote.Classes) {
			if n := c.calls[i][class].Load(); n > 0 {
				s.RedisCalls[class.String()] += n
				s.RedisCallsByOperation[op][class.String()] = n
			}
		}
	}
	if l.cfg.policy != Share {
		s.Instances, s.InstancesAssumed = 0, false
	}
	for _, a := range l.lanes.all() {
		degraded, total := a.outage.state()
		s.DegradedFor += total
		s.Allowed[SourceDegraded] += a.allowed.Load()
		s.Refused[SourceDegraded] += a.refused.Load()
		if degraded {
			s.Degraded = true
			s.MastersDegraded++
		}
	}
	l.events.mu.Lock()
	s.EventsDropped, s.EventPanics = l.events.dropped, l.events.panics
	l.events.mu.Unlock()
	return s
}
