package hybrid

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/resilient-go/limiter/internal/inside"
	"github.com/resilient-go/limiter/remote"
)

// announceEvery is how often an instance says that it is there. The script takes
// one for gone that was silent for two and a half seconds.
const announceEvery = time.Second

// members are the instances of this name. Each announces itself from its first
// message to Redis on, and learns how many there are.
type members struct {
	known atomic.Pointer[headcount] // nil: nobody has told yet

	begun atomic.Bool
	mu    sync.Mutex // guards what follows
	timer inside.Timer
	said  bool // this instance may be counted
	ended bool
}

// A headcount is how many instances reach Redis, and the most that lately did. It
// never changes.
type headcount struct {
	remote.Fleet
	at int64 // instant
}

// begin starts the announcements. It is called for every message.
func (m *members) begin(l *Limiter) {
	if m.begun.Load() || m.begun.Swap(true) || l.cfg.policy != Share || l.cfg.alone || l.cfg.world != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.ended {
		m.timer = l.afterFunc(0, func() { m.announce(l) })
	}
}

// again announces at once, when Redis is back.
func (m *members) again() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.timer != nil && !m.ended {
		m.timer.Reset(0)
	}
}

// announce says that this instance is there, and sets the timer for the next time.
func (m *members) announce(l *Limiter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return
	}
	pause := float64(announceEvery) * (1 - announceSpread*l.chance())
	m.timer.Reset(time.Duration(pause))
	key := remote.FleetKey(l.cfg.name)
	a := l.laneOf(key)
	if a.root.Announce(l.cfg.name, l.cfg.reservation, false, func(f remote.Fleet, err error) {
		if err == nil {
			m.tell(l, f)
		} else {
			a.failed(key, err)
		}
	}) == nil {
		m.said = true
	}
}

// announceSpread keeps instances from announcing themselves together.
const announceSpread = 0.1

// tell takes in how many there are.
func (m *members) tell(l *Limiter, f remote.Fleet) {
	old := m.known.Swap(&headcount{Fleet: f, at: l.now()})
	if old == nil || old.Fleet != f {
		l.events.push(InstancesChanged{At: time.Now(), Live: f.Live, Peak: f.Peak})
	}
}

// leave ends the announcements with the last one.
func (m *members) leave(l *Limiter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = true
	if m.timer != nil {
		m.timer.Stop()
	}
	if !m.said {
		return
	}
	l.flights.add()
	if l.laneOf(remote.FleetKey(l.cfg.name)).root.Announce(l.cfg.name, l.cfg.reservation, true, func(remote.Fleet, error) { l.flights.done() }) != nil {
		l.flights.done()
	}
}

// instances is the number that the limit is divided by in an outage. assumed:
// Redis has not told it, and nobody else has.
func (l *Limiter) instances() (n int, assumed bool) {
	if h := l.members.known.Load(); h != nil {
		return max(1, h.Peak), false
	}
	return l.cfg.instances, !l.cfg.instancesSet
}

// fleet is how many instances reach Redis of those that share the limit. Where that
// is not known, or no longer, all do.
func (l *Limiter) fleet(now int64) (live, all int64) {
	h := l.members.known.Load()
	switch {
	case h == nil:
		return int64(l.cfg.instances), int64(l.cfg.instances)
	case now-h.at > int64(l.cfg.reservation):
		return int64(max(1, h.Live)), int64(max(1, h.Live))
	default:
		return int64(max(1, h.Live)), int64(max(1, h.Live, h.Peak))
	}
}
