package remote

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/lua"
)

// Bounds of what a client has under way. A call is in flight until go-redis
// gives it up, which may be long after our time-out.
const (
	maxInFlight = 6   // pipelines of ordinary calls
	maxProbes   = 2   // probes, so that stuck calls cannot keep the breaker open
	maxBatch    = 100 // calls in one pipeline: a longer one would hold up the server
	maxQueue    = 64 * maxBatch
)

// Config is what New needs.
type Config struct {
	// Holder identifies this process start: two clients must not share it.
	Holder string
	// Algorithm is whose scripts are called; nil: the token bucket's.
	Algorithm *lua.Algorithm
	// Tiers are further limits, of the algorithm lua.Tiers.
	Tiers []Limit
	// Timeout bounds each call, whatever the options of the go-redis client.
	Timeout time.Duration
	// Guard runs each pipeline, or refuses to, and learns its error: the breaker.
	Guard func(send func() error) error
	// Observe, if set, is told the operation, duration and class of each call that
	// was sent, or could not be because everything was stuck. It must not block or
	// call the client.
	Observe func(op string, took time.Duration, class Class)
}

// tiers is how many there are, 0 if there is one.
func (c *Config) tiers() int {
	if len(c.Tiers) == 0 {
		return 0
	}
	return 1 + len(c.Tiers)
}

// Client sends calls to Redis. Calls that come while others are in flight wait
// for the next free pipeline and share it.
type Client struct {
	cfg  Config
	rdb  redis.UniversalClient
	load chan struct{} // held by the one who sends a script's body after NOSCRIPT

	mu       sync.Mutex // guards the fields up to closed
	queue    []*call
	inFlight int // pipelines that go-redis has not given up
	stuck    int // those among them whose time is over
	probes   int
	telling  bool // the guard is being told that all are stuck
	closed   bool

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup // run and Probe; each ends within the time-out
	bodies atomic.Uint64
}

// call is one script call on its way.
type call struct {
	script *lua.Script
	key    string
	args   []any
	queued time.Time
	// returns: it gives a lease back, and is bounded by the leases that there are.
	returns bool
	decode  func(reply any) error // called at most once, before done
	done    func(err error)       // called once
}

// result is what became of a call.
type result struct {
	reply any
	err   error // of this package or of go-redis
}

// New returns a client on rdb, which it never closes.
func New(rdb redis.UniversalClient, cfg Config) *Client {
	if cfg.Algorithm == nil {
		cfg.Algorithm = lua.TokenBucket
	}
	c := &Client{cfg: cfg, rdb: rdb, load: make(chan struct{}, 1)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Acquire sends a message and has done called with the answer, on a goroutine
// of the client, which done must not block. An error means that nothing was or
// will be sent, and that done will not be called.
func (c *Client) Acquire(m *Message, done func(Answer, error)) error {
	k, answer := c.acquire(m)
	k.returns = m.Returned > 0 && len(m.Needs) == 0
	k.done = func(err error) { done(*answer, err) }
	return c.submit(k)
}

func (c *Client) acquire(m *Message) (*call, *Answer) {
	a := new(Answer)
	return &call{
		script: c.cfg.Algorithm.Acquire, key: m.Key, args: withTiers(m.Args(c.cfg.Holder), c.cfg.Tiers),
		decode: func(reply any) (err error) {
			*a, err = m.decode(reply, c.cfg.Algorithm.Timed, c.cfg.tiers())
			return err
		},
	}, a
}

// Peek reads the level of a key, without writing. done is as in Acquire.
func (c *Client) Peek(key string, limit Limit, done func(Level, error)) error {
	return c.level(c.cfg.Algorithm.Peek, key, limit, done)
}

// Reset fills a bucket but for what is out on lease. done is as in Acquire.
func (c *Client) Reset(key string, limit Limit, done func(Level, error)) error {
	return c.level(c.cfg.Algorithm.Reset, key, limit, done)
}

// Announce says that this instance of a limiter is there, or that it leaves, and
// asks how many are. One that is gone without a word is counted in Peak for the
// window. done is as in Acquire.
func (c *Client) Announce(name string, window time.Duration, leaves bool, done func(Fleet, error)) error {
	var f Fleet
	bye := "0"
	if leaves {
		bye = "1"
	}
	return c.submit(&call{
		script: lua.Announce, key: FleetKey(name), returns: leaves,
		args: []any{num(lua.Format), c.cfg.Holder, num(window.Milliseconds()), bye},
		decode: func(reply any) (err error) {
			f, err = decodeFleet(reply)
			return err
		},
		done: func(err error) { done(f, err) },
	})
}

func (c *Client) level(script *lua.Script, key string, limit Limit, done func(Level, error)) error {
	var l Level
	return c.submit(&call{
		script: script, key: key, args: withTiers(limit.args(c.cfg.Algorithm, script), c.cfg.Tiers),
		decode: func(reply any) (err error) {
			l, err = decodeLevel(reply, limit, c.cfg.Algorithm.Timed)
			return err
		},
		done: func(err error) { done(l, err) },
	})
}

// Probe sends a message past the guard and waits for the answer, at most the
// time-out. It is the real script, since a server may answer PING and fail it.
func (c *Client) Probe(m *Message) error {
	c.mu.Lock()
	switch {
	case c.closed:
		c.mu.Unlock()
		return wrap(lua.Acquire.Name(), errClosed)
	case c.probes == maxProbes:
		c.mu.Unlock()
		return wrap(lua.Acquire.Name(), errSaturated)
	}
	c.probes++
	c.work.Add(1)
	c.mu.Unlock()
	defer c.work.Done()

	k, _ := c.acquire(m)
	var outcome error
	k.done = func(err error) { outcome = err }
	batch := []*call{k}
	begun := time.Now()
	results := c.send(batch, true)
	decode(batch, results)
	c.deliver(batch, results, begun)
	return outcome
}

// Bodies tells how often the body of a script was sent.
func (c *Client) Bodies() uint64 { return c.bodies.Load() }

// Close refuses further calls and fails those that wait or are in flight; whoever
// wants their answers waits before. It returns how many go-redis has not given
// up a moment later.
func (c *Client) Close() (stuck int) {
	c.mu.Lock()
	c.closed = true
	queue := c.queue
	c.queue = nil
	c.mu.Unlock()
	fail(queue, errClosed)
	c.cancel()
	c.work.Wait()

	// A client that heeds contexts lets go at once.
	for deadline := time.Now().Add(closeGrace); ; time.Sleep(closeGrace / 10) {
		c.mu.Lock()
		stuck = c.inFlight + c.probes
		c.mu.Unlock()
		if stuck == 0 || time.Now().After(deadline) {
			return stuck
		}
	}
}

const closeGrace = 20 * time.Millisecond
