package redistest

import (
	"time"
)

// Switches are what breaks and mends a server of any kind. Types [Mini],
// [Redis] and [RedisCluster] have them, so a test can run on all of those.
type Switches interface {
	// Kill ends the server at once: connections break, new ones are refused.
	Kill()
	// RestartEmpty starts the server anew, without data and scripts. It
	// kills a server that is still running.
	RestartEmpty()
	// RestartWithData starts the server anew with the data it had when it
	// was killed, without scripts. It kills a server that is still running.
	RestartWithData()
	// Freeze stops the server's execution. Connections stay and new ones
	// are accepted, but nothing is answered.
	Freeze()
	// Thaw ends a Freeze: the server runs what it was sent in the meantime.
	Thaw()
	// ScriptFlush makes the server forget all scripts.
	ScriptFlush()

	// Delay holds back each reply for d. The server runs the command at once.
	Delay(d time.Duration)
	// DropReplies lets the server run the next n scripts, but in place of
	// the reply the client gets the end of its connection.
	DropReplies(n int)
	// FailWith answers each EVAL and EVALSHA with the error text, which
	// begins with its code, as in "LOADING Redis is loading the dataset in
	// memory". The server does not get to see them.
	FailWith(text string)
	// FailNext does what FailWith does for the next n scripts only, and
	// goes before it.
	FailNext(n int, text string)
	// Partition cuts the network without telling anyone: dials hang, and
	// what is sent in either direction waits for the network to heal.
	Partition()
	// Heal ends Delay, DropReplies, FailWith, FailNext and Partition.
	Heal()

	// Counts returns the counters.
	Counts() Counts
}

var (
	_ Switches = (*Mini)(nil)
	_ Switches = (*Redis)(nil)
	_ Switches = (*RedisCluster)(nil)
)

// Counts tell what went through a [Proxy] since it was made. A test that is
// interested in one step takes the difference with [Counts.Sub].
type Counts struct {
	// Dials is the number of connections that clients tried to open,
	// whether they got them or not.
	Dials int
	// Conns is the number of connections that clients got.
	Conns int
	// Eval is the number of EVAL and EVAL_RO commands that clients sent,
	// each with the text of a script.
	Eval int
	// EvalSHA is the number of EVALSHA and EVALSHA_RO commands that clients
	// sent.
	EvalSHA int
	// Runs is the number of scripts that the server ran to their end. It
	// does not matter whether the client got the reply. A script is not
	// counted if its reply was an error, or if it was part of a MULTI.
	Runs int
	// NoScript is the number of EVALSHA that the server answered with
	// NOSCRIPT.
	NoScript int
}

// Sub returns the counts since the earlier state o.
func (c Counts) Sub(o Counts) Counts {
	return Counts{
		Dials:    c.Dials - o.Dials,
		Conns:    c.Conns - o.Conns,
		Eval:     c.Eval - o.Eval,
		EvalSHA:  c.EvalSHA - o.EvalSHA,
		Runs:     c.Runs - o.Runs,
		NoScript: c.NoScript - o.NoScript,
	}
}

// faults are the settings of a proxy's switches. The zero value is no fault.
type faults struct {
	delay    time.Duration
	drops    int    // replies to lose
	failText string // for each script, if not empty
	nextN    int    // for so many scripts ...
	nextText string // ... this instead
}

// failure returns the error text for the script about to run, if any.
func (f *faults) failure() string {
	if f.nextN > 0 {
		f.nextN--
		return f.nextText
	}
	return f.failText
}

// drop tells whether to lose the reply of the script that just ran.
func (f *faults) drop() bool {
	if f.drops == 0 {
		return false
	}
	f.drops--
	return true
}

// Delay holds back each reply for d. The server runs the command at once.
func (p *Proxy) Delay(d time.Duration) {
	p.set(func(f *faults) { f.delay = d })
}

// DropReplies lets the server run the next n scripts, but in place of the
// reply the client gets the end of its connection. An error reply, such as
// NOSCRIPT, is no reply of a script and gets through.
func (p *Proxy) DropReplies(n int) {
	p.set(func(f *faults) { f.drops = n })
}

// FailWith answers each EVAL and EVALSHA with the error text, which begins
// with its code. The server does not get to see them. Empty text ends it.
func (p *Proxy) FailWith(text string) {
	p.set(func(f *faults) { f.failText = text })
}

// FailNext does what FailWith does for the next n scripts only, and goes
// before it.
func (p *Proxy) FailNext(n int, text string) {
	p.set(func(f *faults) { f.nextN, f.nextText = n, text })
}

// Partition cuts the network without telling anyone: dials of clients that
// [Proxy.Client] gave out hang, and what is sent in either direction waits for
// the network to heal.
func (p *Proxy) Partition() { p.network.shut() }

// Heal ends Delay, DropReplies, FailWith, FailNext and Partition.
func (p *Proxy) Heal() {
	p.set(func(f *faults) { *f = faults{} })
	p.network.open()
}

// Counts returns the counters.
func (p *Proxy) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts
}

func (p *Proxy) set(change func(*faults)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.faults)
}
