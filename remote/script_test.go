package remote_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/resilient-go/limiter/internal/redistest"
	"github.com/resilient-go/limiter/remote"
)

func TestBodyIsSentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := redistest.Bubble(t)
		c := newClient(t, r.Client(), timeout)
		expect := func(what string, sha, eval, unknown, runs int, bodies uint64) {
			t.Helper()
			if n := r.Counts(); n.EvalSHA != sha || n.Eval != eval || n.NoScript != unknown || n.Runs != runs || c.Bodies() != bodies {
				t.Errorf("%s: %+v and %d bodies, want %d EVALSHA, %d EVAL, %d NOSCRIPT, %d runs and %d bodies",
					what, n, c.Bodies(), sha, eval, unknown, runs, bodies)
			}
		}
		warm(t, c)
		expect("the first call", 1, 1, 1, 1, 1)
		warm(t, c)
		expect("the second call", 2, 1, 1, 2, 1)
		r.ScriptFlush()
		warm(t, c)
		expect("after a flush", 3, 2, 2, 3, 2)
		r.RestartEmpty()
		warm(t, c)
		expect("after a restart", 4, 3, 3, 4, 3)
	})
}

func TestBodyIsSentOnceForAPipeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := redistest.Bubble(t)
		for i, f := range piped(t, r.Client(), timeout, 50) {
			if o := f.wait(); o.err != nil || o.Granted[0] != 1 || o.Tokens != 9*remote.Unit {
				t.Errorf("call %d: %+v, %v", i, o.Answer, o.err)
			}
		}
		// All are asked by name, one with the body, and the others by name again.
		if n := r.Counts(); n.EvalSHA != 50+49 || n.NoScript != 50 || n.Eval != 1 || n.Runs != 50 {
			t.Errorf("%+v, want 99 EVALSHA, one EVAL and 50 runs", n)
		}
	})
}

func TestEachScriptHasItsBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := redistest.Bubble(t)
		c := newClient(t, r.Client(), timeout)
		levels := make(chan remote.Level, 2)
		level := func(l remote.Level, err error) {
			if err != nil {
				t.Error(err)
			}
			levels <- l
		}
		warm(t, c)
		if err := c.Peek(remote.Key("test", "warm"), tenPerHour, level); err != nil {
			t.Fatal(err)
		}
		if l := <-levels; l.Tokens != 9*remote.Unit || l.Out != 0 {
			t.Errorf("a peek sees %+v, want 9 tokens", l)
		}
		if err := c.Reset(remote.Key("test", "warm"), tenPerHour, level); err != nil {
			t.Fatal(err)
		}
		if l := <-levels; l.Tokens != 10*remote.Unit {
			t.Errorf("a reset leaves %+v, want 10 tokens", l)
		}
		if n := r.Counts(); n.Eval != 3 || c.Bodies() != 3 || n.Runs != 3 {
			t.Errorf("%+v and %d bodies, want 3", n, c.Bodies())
		}
	})
}

// After a flush everybody learns at once that the script is unknown, and one
// sends it.
func TestOneSenderTeachesTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := redistest.Bubble(t)
		rdb := r.Client(onePool)
		connect(t, r, rdb)
		c := newClient(t, rdb, timeout)
		warm(t, c)
		r.Delay(5 * time.Millisecond)
		for range 3 {
			r.ScriptFlush()
			before := r.Counts()
			calls := many(c, remote.MaxInFlight+20)
			for _, f := range calls {
				if o := f.wait(); o.err != nil {
					t.Fatal(o.err)
				}
			}
			if n := r.Counts().Sub(before); n.Eval != 1 || n.Runs != len(calls) {
				t.Errorf("%+v, want one EVAL and %d runs", n, len(calls))
			}
		}
	})
}

// A server that forgets scripts as fast as it learns them cannot be served, and
// is not swamped with bodies.
func TestServerThatForgetsScripts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := redistest.Bubble(t)
		c := newClient(t, r.Client(), timeout)
		r.FailWith("NOSCRIPT No matching script. Please use EVAL.")
		if o := call(c, one("key")); o.class() != remote.Unavailable {
			t.Errorf("%v, want class unavailable", o.err)
		}
		if n := r.Counts(); n.EvalSHA != 1 || n.Eval != 1 {
			t.Errorf("%+v, want one of each", n)
		}
		r.Heal()
		if o := call(c, one("key")); o.err != nil {
			t.Error(o.err)
		}
	})
}

// Flushed again and again under load: every call is served.
func TestFlushesUnderLoad(t *testing.T) {
	s := redistest.Server(t)
	c := newClient(t, s.Client(), patience)
	rounds := 20
	if full {
		rounds = 500
	}
	for range rounds {
		calls := many(c, 50)
		s.ScriptFlush()
		for _, f := range calls {
			if o := f.wait(); o.err != nil {
				t.Fatal(o.err)
			}
		}
	}
	if n := s.Counts(); n.Runs != 50*rounds || n.Eval > 2*rounds+2 {
		t.Errorf("%+v, want %d runs and no more than two EVAL for each flush", n, 50*rounds)
	}
}
