package remote

import (
	"context"
	"time"

	"github.com/resilient-go/limiter/lua"
)

// submit queues a call and sees to it that somebody sends it.
func (c *Client) submit(k *call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return wrap(k.script.Name(), errClosed)
	case c.stuck == maxInFlight:
		c.tell()
		fallthrough
	case len(c.queue) >= maxQueue && !k.returns:
		c.observe(k, 0, Saturated)
		return wrap(k.script.Name(), errSaturated)
	}
	k.queued = time.Now()
	c.queue = append(c.queue, k)
	c.start()
	return nil
}

// tell lets the guard know that nothing can be sent because everything is stuck:
// no call would otherwise reach it before go-redis gives one up. mu is held.
func (c *Client) tell() {
	if c.telling {
		return
	}
	c.telling = true
	c.work.Add(1)
	go func() {
		defer c.work.Done()
		_ = c.cfg.Guard(func() error { return wrap(lua.Acquire.Name(), errSaturated) })
		c.mu.Lock()
		c.telling = false
		c.mu.Unlock()
	}()
}

func (c *Client) observe(k *call, took time.Duration, class Class) {
	if c.cfg.Observe != nil {
		c.cfg.Observe(k.script.Name(), took, class)
	}
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
	// Nobody waits any more for a call that queued for the whole time-out: sent
	// now, it would only be charged for nothing.
	late := 0
	for late < len(batch) && begun.Sub(batch[late].queued) >= c.cfg.Timeout {
		late++
	}
	batch, expired := batch[late:], batch[:late]
	var results []result
	if len(batch) > 0 {
		_ = c.cfg.Guard(func() error { // its refusal shows in the results
			results = c.send(batch, false)
			decode(batch, results)
			return worst(batch, results)
		})
	}
	if results == nil { // nothing was sent
		c.mu.Lock()
		c.inFlight--
		c.start()
		c.mu.Unlock()
		fail(batch, errRefused)
	} else {
		c.deliver(batch, results, begun)
	}
	fail(expired, errSaturated)
}

// decode reads the replies, so that the guard and the counters learn of those
// that are not answers.
func decode(batch []*call, results []result) {
	for i, k := range batch {
		if r := &results[i]; r.err == nil {
			r.err = k.decode(r.reply)
		}
	}
}

func (c *Client) deliver(batch []*call, results []result, begun time.Time) {
	took := time.Since(begun)
	for i, k := range batch {
		err := wrap(k.script.Name(), results[i].err)
		c.observe(k, took, ClassOf(err))
		k.done(err)
	}
}

// send exchanges a batch in a goroutine of its own and waits for it, at most
// the time-out. The goroutine ends when go-redis lets go of the calls; until
// then it takes up a place in flight.
func (c *Client) send(batch []*call, probe bool) []result {
	// go-redis may go on for longer than anybody waits: a new connection and an
	// unknown script take several round trips, and a server that is far but well
	// would otherwise never get to know either.
	ctx, cancel := context.WithTimeout(c.ctx, 4*c.cfg.Timeout)
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
		k.done(wrap(k.script.Name(), err))
	}
}
