package redistest

import (
	"net"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// Mini is miniredis with switches.
type Mini struct {
	*Proxy
	t    testing.TB
	mini *miniredis.Miniredis
	mu   sync.Mutex // held by what kills and starts it
}

// Bubble returns a miniredis for use in a testing/synctest bubble. Call it
// inside of the function that is given to synctest.Test, with the t of that
// function. Time on the server is the fake time of the bubble.
//
// Its clients have a PoolSize of 128, so that callers hardly ever wait for a
// free connection: go-redis does that with timers that it shares among all
// clients of the process, also those outside of the bubble. A test that wants
// a small pool must not run in parallel with others.
func Bubble(t testing.TB) *Mini {
	t.Helper()
	keepTimersApart(t)
	return newMini(t, true)
}

// keepTimersApart is for what runs in a bubble. It is called before it starts.
func keepTimersApart(t testing.TB) {
	t.Helper()
	if !inBubble() {
		t.Fatal("redistest: Bubble is called outside of a synctest bubble")
	}
	t.Cleanup(func() {
		// A bubble's clock stops when its test is over, and a goroutine that
		// is then still asleep is a failure. Those of a closed go-redis pool
		// sleep between two attempts to dial: let them wake up and end.
		time.Sleep(time.Minute)
		dropSharedTimers()
	})
	dropSharedTimers()
}

// MiniTCP returns a miniredis on a loopback port. Time on the server is real.
func MiniTCP(t testing.TB) *Mini {
	t.Helper()
	return newMini(t, false)
}

func newMini(t testing.TB, memory bool) *Mini {
	t.Helper()
	m := &Mini{t: t, mini: miniredis.NewMiniRedis()}
	t.Cleanup(m.mini.Close)
	m.mini.ClockTTL(true)
	m.Proxy = newProxy(t, memory, m.mini.Dial)
	m.start()
	return m
}

// inBubble tells whether the goroutine is in a synctest bubble.
func inBubble() (ok bool) {
	defer func() { ok = recover() == nil }()
	synctest.Wait() // panics outside of a bubble
	return true
}

// dropSharedTimers separates a bubble from other tests. Callers that wait for
// a free connection do so with timers from a sync.Pool that all clients of the
// process share. A bubble's timer outside of it is fatal, and inside of it a
// real one stops the fake clock. The second of two garbage collections drops
// what is in the pool now.
func dropSharedTimers() {
	runtime.GC()
	runtime.GC()
}

// Miniredis returns the server itself, to look at its data.
func (m *Mini) Miniredis() *miniredis.Miniredis { return m.mini }

// Kill ends the server at once: connections break, new ones are refused.
func (m *Mini) Kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kill()
}

func (m *Mini) kill() {
	m.stop()
	m.mini.Close() // waits for what it still executes
}

// RestartEmpty starts the server anew, without data and scripts. It kills a
// server that is still running.
func (m *Mini) RestartEmpty() {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kill()
	m.mini.FlushAll()
	m.ScriptFlush()
	m.start()
}

// RestartWithData starts the server anew with its data, without scripts. It
// kills a server that is still running. Keys whose time to live ended while it
// was killed are gone.
func (m *Mini) RestartWithData() {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kill()
	m.ScriptFlush()
	m.start()
}

// Freeze stops the server's execution. Connections stay and new ones are
// accepted, but nothing is answered.
func (m *Mini) Freeze() { m.server.shut() }

// Thaw ends a Freeze: the server runs what it was sent in the meantime.
func (m *Mini) Thaw() { m.server.open() }

// ScriptFlush makes the server forget all scripts.
func (m *Mini) ScriptFlush() {
	m.t.Helper()
	dial := func() (net.Conn, error) { return m.mini.Dial() }
	if _, err := do(dial, time.Second, "SCRIPT", "FLUSH"); err != nil {
		m.t.Errorf("redistest: SCRIPT FLUSH: %v", err)
	}
}
