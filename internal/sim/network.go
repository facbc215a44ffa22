package sim

import (
	"errors"
	"time"

	"github.com/resilient-go/limiter/lua"
	"github.com/resilient-go/limiter/remote"
)

// A Network says how messages travel.
type Network struct {
	// Up: Redis runs. While it does not, messages are lost.
	Up bool
	// RTT is the round trip, half of it each way; Jitter is added to each way, from
	// nothing to all of it, so that messages overtake each other.
	RTT, Jitter time.Duration
	// LoseRequest and LoseReply are the chances that a message does not arrive, or
	// that its answer does not.
	LoseRequest, LoseReply float64
	// Delay is the chance that one way takes up to MaxDelay more.
	Delay    float64
	MaxDelay time.Duration
}

// way is how long one way takes.
func (w *World) way() time.Duration {
	n := &w.Network
	d := n.RTT / 2
	if n.Jitter > 0 {
		d += time.Duration(w.Rand.Int64N(int64(n.Jitter)))
	}
	if n.Delay > 0 && w.Rand.Float64() < n.Delay {
		d += time.Duration(w.Rand.Int64N(int64(n.MaxDelay)))
	}
	return d
}

func (w *World) lost(chance float64) bool { return chance > 0 && w.Rand.Float64() < chance }

// post carries a message to Redis and its answer back. What is lost never
// arrives.
func (w *World) post(i *Instance, m *remote.Message, arrive func(remote.Answer, error)) {
	w.calls++
	if w.lost(w.Network.LoseRequest) {
		return
	}
	args := m.Args(i.holder)
	w.plan(w.now+int64(w.way()), func() {
		if !w.Network.Up || i.cut {
			return
		}
		reply, err := w.Redis.Eval(lua.Acquire, m.Key, args)
		if w.lost(w.Network.LoseReply) {
			return
		}
		w.plan(w.now+int64(w.way()), func() {
			if i.cut {
				return
			}
			if err != nil {
				arrive(remote.Answer{}, &remote.Error{Class: remote.ClassOf(err), Op: lua.Acquire.Name(), Err: err})
				return
			}
			a, err := m.Decode(reply)
			if err != nil {
				err = &remote.Error{Class: remote.ClassOf(err), Op: lua.Acquire.Name(), Err: err}
			}
			arrive(a, err)
		})
	})
}

var errTimeout error = &remote.Error{Class: remote.Timeout, Op: lua.Acquire.Name(), Err: errors.New("sim: no answer within the time-out")}
