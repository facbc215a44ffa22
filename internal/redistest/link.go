package redistest

import (
	"bufio"
	"bytes"
	"net"
	"sync"
	"time"
)

// A link is one connection of a client, and the proxy's connection to the
// server for it. Its work is a pipeline of three stages with a goroutine each:
// receive reads commands, execute has the server run them one by one, and send
// writes the replies. It ends stage by stage when the client closes its
// connection, and at once when it is killed.
type link struct {
	p        *Proxy
	client   net.Conn
	server   net.Conn
	commands *queue[command]
	replies  *queue[reply]

	killOnce sync.Once
	dead     chan struct{} // closed by kill
}

// A reply is what execute passes to send.
type reply struct {
	raw  []byte
	due  time.Time // do not send it earlier
	lost bool      // do not send it, cut the connection
}

func newLink(p *Proxy, client, server net.Conn) *link {
	return &link{
		p:        p,
		client:   client,
		server:   server,
		commands: newQueue[command](),
		replies:  newQueue[reply](),
		dead:     make(chan struct{}),
	}
}

// serve runs the stages until all have ended.
func (l *link) serve() {
	var stages sync.WaitGroup
	stages.Go(l.receive)
	stages.Go(l.execute)
	stages.Go(l.send)
	stages.Wait()
}

// kill breaks both connections, which ends all stages.
func (l *link) kill() {
	l.killOnce.Do(func() {
		close(l.dead)
		l.client.Close()
		l.server.Close()
	})
}

// receive ends when the client's connection does. The commands that came
// before that are still executed.
func (l *link) receive() {
	defer l.commands.close()
	r := bufio.NewReader(l.client)
	for {
		c, err := readCommand(r)
		if err != nil {
			return
		}
		l.p.countCommand(c)
		l.commands.put(c)
	}
}

func (l *link) execute() {
	defer l.replies.close()
	r := bufio.NewReader(l.server)
	for {
		c, ok := l.commands.take()
		if !ok {
			break
		}
		if !l.p.network.pass(l.dead) || !l.p.server.pass(l.dead) {
			return
		}
		if raw := l.p.refusal(c); raw != nil {
			l.replies.put(l.p.reply(raw))
			continue
		}
		if _, err := l.server.Write(c.raw); err != nil {
			break
		}
		raw, err := readReply(r)
		if err != nil {
			break
		}
		out := l.p.reply(raw)
		out.lost = c.isScript() && l.p.ranScript(raw)
		l.replies.put(out)
	}
	// Either there are no more commands or the server has gone, and with it
	// goes the client's connection, once it has the replies.
	l.server.Close()
}

func (l *link) send() {
	defer l.kill()
	for {
		out, ok := l.replies.take()
		if !ok {
			return
		}
		if !l.waitUntil(out.due) || !l.p.network.pass(l.dead) {
			return
		}
		// With the client's connection cut, what it sent is still executed:
		// the loop goes on and the later writes fail.
		if out.lost {
			l.client.Close()
		} else if _, err := l.client.Write(out.raw); err != nil {
			l.client.Close()
		}
	}
}

// waitUntil returns false if the link is killed before.
func (l *link) waitUntil(due time.Time) bool {
	d := time.Until(due)
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.dead:
		return false
	}
}

// countCommand counts a command that a client sent.
func (p *Proxy) countCommand(c command) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case c.isEval():
		p.counts.Eval++
	case c.isEvalSHA():
		p.counts.EvalSHA++
	}
}

// refusal returns the error reply to a command that must not get to the
// server, or nil.
func (p *Proxy) refusal(c command) []byte {
	if c.isPush() {
		return errorReply("ERR redistest: the proxy does not carry " + c.name)
	}
	if !c.isScript() {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if text := p.faults.failure(); text != "" {
		return errorReply(text)
	}
	return nil
}

// reply makes a reply that is sent after the delay that is set now.
func (p *Proxy) reply(raw []byte) reply {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.faults.delay == 0 {
		return reply{raw: raw}
	}
	return reply{raw: raw, due: time.Now().Add(p.faults.delay)}
}

// ranScript counts what the server made of a script, and tells whether the
// reply is to be lost.
func (p *Proxy) ranScript(raw []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case bytes.HasPrefix(raw, []byte("-NOSCRIPT")):
		p.counts.NoScript++
		return false
	case raw[0] == '-', raw[0] == '!', bytes.HasPrefix(raw, []byte("+QUEUED")):
		return false
	}
	p.counts.Runs++
	return p.faults.drop()
}
