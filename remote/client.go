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
	// Timeout bounds each call, whatever the options of the go-redis client.
	Timeout time.Duration
	// Guard runs each pipeline, or refuses to, and learns its error: the breaker.
	Guard func(send func() error) error
	// Observe, if set, is told each call's operation, duration and class.
	Observe func(op string, took time.Duration, class Class)
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
	done   func(reply any, err error) // called once
}

// result is what became of a call.
type result struct {
	reply any
	err   error // of this package or of go-redis
}

// New returns a client on rdb, which it never closes.
func New(rdb redis.UniversalClient, cfg Config) *Client {
	c := &Client{cfg: cfg, rdb: rdb, load: make(chan struct{}, 1)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Acquire sends a message and has done called with the answer, on a goroutine
// of the client, which done must not block. An error means that nothing was or
// will be sent, and that done will not be called.
func (c *Client) Acquire(m *Message, done func(Answer, error)) error {
	return c.submit(&call{
		script: lua.Acquire, key: m.Key, args: m.args(c.cfg.Holder),
		done: func(reply any, err error) {
			var a Answer
			if err == nil {
				a, err = decodeAnswer(reply, m)
			}
			done(a, wrap(lua.Acquire.Name(), err))
		},
	})
}

// Peek reads the level of a key, without writing. done is as in Acquire.
func (c *Client) Peek(key string, limit Limit, done func(Level, error)) error {
	return c.level(lua.Peek, key, limit, done)
}

// Reset fills a bucket but for what is out on lease. done is as in Acquire.
func (c *Client) Reset(key string, limit Limit, done func(Level, error)) error {
	return c.level(lua.Reset, key, limit, done)
}

func (c *Client) level(script *lua.Script, key string, limit Limit, done func(Level, error)) error {
	return c.submit(&call{
		script: script, key: key, args: limit.args(),
		done: func(reply any, err error) {
			var l Level
			if err == nil {
				l, err = decodeLevel(reply, limit)
			}
			done(l, wrap(script.Name(), err))
		},
	})
}

// Probe sends a message past the guard and waits for the answer, at most the
// time-out. It is the real script, since a server may answer PING and fail it.
func (c *Client) Probe(m *Message) error {
	c.mu.Lock()
	if c.closed || c.probes == maxProbes {
		c.mu.Unlock()
		return wrap(lua.Acquire.Name(), errSaturated)
	}
	c.probes++
	c.work.Add(1)
	c.mu.Unlock()
	defer c.work.Done()

	var answer error
	batch := []*call{{
		script: lua.Acquire, key: m.Key, args: m.args(c.cfg.Holder),
		done: func(reply any, err error) {
			if err == nil {
				_, err = decodeAnswer(reply, m)
			}
			answer = wrap(lua.Acquire.Name(), err)
		},
	}}
	begun := time.Now()
	c.deliver(batch, c.send(batch, true), begun)
	return answer
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

// submit queues a call and sees to it that somebody sends it.
func (c *Client) submit(k *call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return wrap(k.script.Name(), errClosed)
	case c.stuck == maxInFlight, len(c.queue) >= maxQueue:
		return wrap(k.script.Name(), errSaturated)
	}
	c.queue = append(c.queue, k)
	c.start()
	return nil
}

// start begins a pipeline if there are calls and room for one. mu is held.
func (c *Client) start() {
	if len(c.queue) == 0 || c.inFlight == maxInFlight {
		return
	}
	n := min(len(c.queue), maxBatch)
	batch := c.queue[:n:n]
	c.queue = c.queue[n:]
	c.inFlight++
	c.work.Add(1)
	go c.run(batch)
}

// run sends one pipeline under the guard and answers its calls.
func (c *Client) run(batch []*call) {
	defer c.work.Done()
	begun := time.Now()
	var results []result
	_ = c.cfg.Guard(func() error { // its refusal shows in the results
		results = c.send(batch, false)
		return worst(batch, results)
	})
	if results == nil { // refused
		c.mu.Lock()
		c.inFlight--
		c.start()
		c.mu.Unlock()
		fail(batch, errRefused)
		return
	}
	c.deliver(batch, results, begun)
}

func (c *Client) deliver(batch []*call, results []result, begun time.Time) {
	took := time.Since(begun)
	for i, k := range batch {
		err := wrap(k.script.Name(), results[i].err)
		if c.cfg.Observe != nil {
			c.cfg.Observe(k.script.Name(), took, ClassOf(err))
		}
		k.done(results[i].reply, err)
	}
}

// send exchanges a batch in a goroutine of its own and waits for it, at most
// the time-out. The goroutine ends when go-redis lets go of the calls; until
// then it takes up a place in flight.
func (c *Client) send(batch []*call, probe bool) []result {
	ctx, cancel := context.WithTimeout(c.ctx, c.cfg.Timeout)
	var ( // guarded by mu
		results []result
		late    bool
	)
	ready := make(chan struct{})
	go func() {
		defer cancel()
		r := c.exchange(ctx, batch)
		c.mu.Lock()
		defer c.mu.Unlock()
		if results == nil {
			results = r
		}
		if probe {
			c.probes--
		} else {
			c.inFlight--
		}
		if late && !probe {
			c.stuck--
		}
		c.start()
		close(ready)
	}()

	timer := time.NewTimer(c.cfg.Timeout)
	defer timer.Stop()
	var orphans []*call
	why := errTimeout
	select {
	case <-ready:
		return results
	case <-timer.C:
	case <-c.ctx.Done():
		why = errClosed
	}
	c.mu.Lock()
	if late = results == nil; late {
		results = make([]result, len(batch))
		for i := range results {
			results[i].err = why
		}
		// When every pipeline is stuck, those who queue have nobody to wait for.
		if !probe {
			if c.stuck++; c.stuck == maxInFlight {
				orphans, c.queue = c.queue, nil
			}
		}
	}
	c.mu.Unlock()
	fail(orphans, errSaturated)
	return results
}

// worst is the error that says most about the server.
func worst(batch []*call, results []result) error {
	var worst error
	for i, k := range batch {
		if err := wrap(k.script.Name(), results[i].err); err != nil && (worst == nil || !ClassOf(err).KeyOnly()) {
			worst = err
		}
	}
	return worst
}

func fail(calls []*call, err error) {
	for _, k := range calls {
		k.done(nil, wrap(k.script.Name(), err))
	}
}
