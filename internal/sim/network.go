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

	thaws int64 // until then Redis answers nobody; what arrives meanwhile waits
}

// FreezeRedis stops Redis for that long, like SIGSTOP. It then answers what has
// arrived meanwhile.
func (w *World) FreezeRedis(d time.Duration) {
	w.Network.thaws = max(w.Network.thaws, w.now+int64(d))
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

// A Post is a message, and what became of it so far.
type Post struct {
	From    *Instance
	Message *remote.Message
	Sent    time.Duration
	Ran     time.Duration // when the script ran
	Reply   any           // of the script
	Err     error
	Lost    string // why it went no further
	Over    bool   // the sender no longer waits for the answer
}

// post carries a message to Redis and its answer back. What is lost never
// arrives.
func (w *World) post(i *Instance, m *remote.Message, arrive func(*Post, remote.Answer, error)) *Post {
	w.calls++
	p := &Post{From: i, Message: m, Sent: w.Now()}
	if w.Posted != nil {
		w.Posted(p)
	}
	if w.lost(w.Network.LoseRequest) {
		w.lose(p, "request")
		return p
	}
	args := m.Args(i.holder)
	way := w.way()
	if w.Holding != nil {
		way += w.Holding(p)
	}
	w.plan(w.now+int64(way), func() { w.deliver(p, args, arrive) })
	return p
}

func (w *World) deliver(p *Post, args []any, arrive func(*Post, remote.Answer, error)) {
	i, m := p.From, p.Message
	switch {
	case !w.Network.Up:
		w.lose(p, "Redis is down")
		return
	case i.cut:
		w.lose(p, "cut on the way there")
		return
	case w.Network.thaws > w.now:
		w.plan(w.Network.thaws, func() { w.deliver(p, args, arrive) })
		return
	}
	p.Ran = w.Now()
	p.Reply, p.Err = w.Redis.Eval(lua.Acquire, m.Key, args)
	if w.Scripted != nil {
		w.Scripted(p)
	}
	if w.lost(w.Network.LoseReply) {
		w.lose(p, "reply")
		return
	}
	w.plan(w.now+int64(w.way()), func() {
		if i.cut || i.deaf {
			w.lose(p, "cut on the way back")
			return
		}
		a, err := remote.Answer{}, p.Err
		if err == nil {
			a, err = m.Decode(p.Reply)
		}
		if err != nil {
			err = &remote.Error{Class: remote.ClassOf(err), Op: lua.Acquire.Name(), Err: err}
		}
		arrive(p, a, err)
	})
}

func (w *World) lose(p *Post, why string) {
	if p.Lost = why; w.Losing != nil {
		w.Losing(p)
	}
}

var errTimeout error = &remote.Error{Class: remote.Timeout, Op: lua.Acquire.Name(), Err: errors.New("sim: no answer within the time-out")}
