package remote_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/internal/redistest"
	"github.com/resilient-go/limiter/remote"
)

// timeout is the remote time-out of tests in a bubble, patience that of tests
// with real servers, which must not run into it by mistake.
const (
	timeout  = 50 * time.Millisecond
	patience = 10 * time.Second
)

var tenPerHour = remote.Limit{Num: 1, Den: 360, Burst: 10 * remote.Unit}

// pass is a guard that lets everything through.
func pass(send func() error) error { return send() }

// newClient makes a client that is closed when the test ends.
func newClient(t testing.TB, rdb redis.UniversalClient, timeout time.Duration, change ...func(*remote.Config)) *remote.Client {
	cfg := remote.Config{Holder: "holder", Timeout: timeout, Guard: pass}
	for _, f := range change {
		f(&cfg)
	}
	c := remote.New(rdb, cfg)
	t.Cleanup(func() { c.Close() })
	return c
}

var lastSeq struct {
	sync.Mutex
	n uint64
}

// one is a message that asks for one token of a key.
func one(key string) *remote.Message {
	lastSeq.Lock()
	defer lastSeq.Unlock()
	lastSeq.n++
	return &remote.Message{
		Key: remote.Key("test", key), Limit: tenPerHour, Seq: lastSeq.n, TTL: time.Second,
		Needs: []remote.Need{{Tokens: remote.Unit, Count: 1}},
	}
}

// An outcome is what became of a call, and when.
type outcome struct {
	remote.Answer
	err error
	at  time.Time
}

func (o outcome) class() remote.Class { return remote.ClassOf(o.err) }

// A future is a call whose outcome is still to come.
type future chan outcome

// start sends a message.
func start(c *remote.Client, m *remote.Message) future {
	f := make(future, 2) // room for one too many
	if err := c.Acquire(m, func(a remote.Answer, err error) { f <- outcome{a, err, time.Now()} }); err != nil {
		f <- outcome{err: err, at: time.Now()}
	}
	return f
}

// wait gives the outcome.
func (f future) wait() outcome { return <-f }

// call sends a message and waits.
func call(c *remote.Client, m *remote.Message) outcome { return start(c, m).wait() }

// many sends so many messages, for different keys.
func many(c *remote.Client, n int) []future {
	fs := make([]future, n)
	for i := range fs {
		fs[i] = start(c, one(fmt.Sprint("key", i)))
	}
	return fs
}

// allAre fails unless each call ended with that class at that instant.
func allAre(t *testing.T, fs []future, class remote.Class, at time.Time) {
	t.Helper()
	for i, f := range fs {
		if o := f.wait(); o.class() != class || !o.at.Equal(at) {
			t.Fatalf("call %d of %d: %v at %v, want %v at %v", i, len(fs), o.err, o.at, class, at)
		}
	}
}

// warm makes the server know the scripts.
func warm(t testing.TB, c *remote.Client) {
	t.Helper()
	if o := call(c, one("warm")); o.err != nil {
		t.Fatalf("warming up: %v", o.err)
	}
}

// eventually polls a real process, for a time that a busy machine may need.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for !f() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

// silent is the log of servers that complain about our tests.
var silent = log.New(io.Discard, "", 0)

// trusting is a TLS configuration that trusts what the system trusts.
func trusting() *tls.Config {
	return &tls.Config{ServerName: "localhost", MinVersion: tls.VersionTLS12}
}

// piped has so many calls, of a new client, share one pipeline: they queue while
// every place in flight is taken by a call that waits in the guard, and is refused
// there in the end.
func piped(t testing.TB, rdb redis.UniversalClient, timeout time.Duration, n int) []future {
	t.Helper()
	var open atomic.Bool
	entered, gate := make(chan struct{}, remote.MaxInFlight), make(chan struct{})
	c := newClient(t, rdb, timeout, func(cfg *remote.Config) {
		cfg.Guard = func(send func() error) error {
			if open.Load() {
				return send()
			}
			entered <- struct{}{}
			<-gate
			return errors.New("refused")
		}
	})
	blockers := many(c, remote.MaxInFlight)
	for range blockers {
		<-entered
	}
	calls := many(c, n)
	open.Store(true)
	close(gate)
	for _, f := range blockers {
		if o := f.wait(); o.class() != remote.Refused {
			t.Fatalf("%v, want class refused", o.err)
		}
	}
	return calls
}

// onePool makes pipelines use the connections that single commands use.
func onePool(o *redis.Options) { o.PipelinePoolSize = -1 }

// connect opens a few connections, so that later calls need no handshake.
func connect(t *testing.T, s redistest.Switches, rdb *redis.Client) {
	t.Helper()
	s.Delay(time.Millisecond)
	defer s.Heal()
	var pings sync.WaitGroup
	for range remote.MaxInFlight + 2 {
		pings.Go(func() {
			if err := rdb.Ping(t.Context()).Err(); err != nil {
				t.Error(err)
			}
		})
	}
	pings.Wait()
}
