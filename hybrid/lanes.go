package hybrid

import (
	"sync"
	"sync/atomic"

	"github.com/resilient-go/limiter/breaker"
	"github.com/resilient-go/limiter/remote"
)

// lanes are the ways to the masters. On a Cluster the client's own view of the slots
// decides which one a key takes, and is looked up whenever somebody needs to know: it
// costs a tenth of a microsecond, and there is no second view to be kept. Lanes stay,
// also those of masters that are gone: they are small and do nothing.
type lanes struct {
	masters *remote.Masters         // nil: not a Cluster
	list    atomic.Pointer[[]*lane] // the first one is for keys whose master is not known; never changed, only replaced

	mu     sync.Mutex // held by the one who replaces the list, and over what concerns all lanes
	closed bool
}

// all gives the lanes that there are.
func (s *lanes) all() []*lane { return *s.list.Load() }

// home is the only lane, or that of keys whose master is not known.
func (s *lanes) home() *lane { return s.all()[0] }

func (s *lanes) find(node string) *lane {
	for _, a := range s.all() {
		if a.node == node {
			return a
		}
	}
	return nil
}

// masterOf gives the address of a key's master, "" if there are none or none is known.
func (s *lanes) masterOf(key string) string {
	if s.masters == nil {
		return ""
	}
	return s.masters.Of(key)
}

// reload has the client find out who the masters are now.
func (s *lanes) reload() {
	if s.masters != nil {
		s.masters.Reload()
	}
}

// laneOf gives the lane of a key, as it is named in Redis.
func (l *Limiter) laneOf(key string) *lane {
	node := l.lanes.masterOf(key)
	if a := l.lanes.find(node); a != nil {
		return a
	}
	return l.addLane(node, key)
}

func (l *Limiter) addLane(node, key string) *lane {
	s := &l.lanes
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.find(node); a != nil {
		return a
	}
	if s.closed {
		return s.home()
	}
	a := l.newLane(node, key)
	if l.drill.on.Load() {
		a.beginDrill()
	}
	list := append(s.all()[:len(s.all()):len(s.all())], a)
	s.list.Store(&list)
	return a
}

// route takes a key to the lane of its master, which may be another one by now. mu is
// held and no message is under way.
func (l *Limiter) route(e *entry, now int64) {
	if l.lanes.masters == nil {
		return
	}
	old := e.lane.Load()
	if l.lanes.masters.Of(e.key) == old.node {
		return
	}
	e.lane.Store(l.laneOf(e.key))
	e.careful = max(e.careful, old.carefulUntil(now))
	e.withdraw()
}

// breaker is the state of the breakers: that of the worst.
func (s *lanes) breaker() breaker.State {
	worst := breaker.Closed
	for _, a := range s.all() {
		switch state := a.gate.State(); state {
		case breaker.Open:
			return breaker.Open
		case breaker.HalfOpen:
			worst = breaker.HalfOpen
		case breaker.Closed:
		}
	}
	return worst
}

// bodies is how often the body of a script was sent.
func (s *lanes) bodies() (n uint64) {
	for _, a := range s.all() {
		n += a.root.Bodies()
	}
	return n
}

// close ends all lanes, and gives the number of calls that were left behind.
func (s *lanes) close() (stuck int) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	var (
		work sync.WaitGroup
		sum  atomic.Int64
	)
	for _, a := range s.all() { // together, since each may wait a little
		work.Go(func() {
			sum.Add(int64(a.root.Close()))
			a.gate.Close()
		})
	}
	work.Wait()
	return int(sum.Load())
}
