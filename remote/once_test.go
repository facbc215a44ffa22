package remote_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/internal/redistest"
	"github.com/resilient-go/limiter/lua"
	"github.com/resilient-go/limiter/remote"
)

// The clients below have the default options of go-redis, which repeats a command
// whose answer it did not get. The controls show that it does.

// faults are what can happen to an answer after the script has run.
var faults = []struct {
	name  string
	class remote.Class
	make  func(s redistest.Switches, n int)
}{
	{"dropped", remote.Connection, func(s redistest.Switches, n int) { s.DropReplies(n) }},
	{"delayed", remote.Timeout, func(s redistest.Switches, _ int) { s.Delay(20 * time.Second) }},
}

func TestScriptRunsOnceWhenItsAnswerIsLost(t *testing.T) {
	for _, fault := range faults {
		t.Run(fault.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := redistest.Bubble(t)
				rdb, plain := r.Client(), r.Client()
				connect(t, r, rdb)
				connect(t, r, plain)
				c := newClient(t, rdb, timeout)
				warm(t, c)
				before := r.Counts()
				fault.make(r, 100)
				if o := call(c, one("key")); o.class() != fault.class {
					t.Errorf("%v, want class %v", o.err, fault.class)
				}
				time.Sleep(time.Minute)
				if n := r.Counts().Sub(before); n.Runs != 1 || n.EvalSHA != 1 {
					t.Errorf("%+v, want one execution", n)
				}
				if runs := control(t, r, plain); runs < 2 {
					t.Errorf("a plain command ran %d times: the test shows nothing", runs)
				}
			})
		})
	}
}

// control sends a plain command under the same fault and tells how often it ran.
func control(t *testing.T, r redistest.Switches, rdb redis.UniversalClient) int {
	t.Helper()
	synctest.Wait() // fails out of a bubble
	before := r.Counts()
	_ = rdb.Eval(t.Context(), lua.Reset.Text(), []string{remote.Key("test", "control")}, "1", "1", "360", "10000000", "0").Err()
	time.Sleep(time.Minute)
	return r.Counts().Sub(before).Runs
}

func TestPipelineRunsOnceWhenItsAnswersAreLost(t *testing.T) {
	for _, fault := range faults {
		t.Run(fault.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := redistest.Bubble(t)
				rdb := r.Client(onePool)
				connect(t, r, rdb)
				warm(t, newClient(t, rdb, timeout))
				before := r.Counts()
				fault.make(r, 100)
				for i, f := range piped(t, rdb, timeout, 5) {
					if o := f.wait(); o.class() != fault.class {
						t.Errorf("call %d: %v, want class %v", i, o.err, fault.class)
					}
				}
				time.Sleep(time.Minute)
				if n := r.Counts().Sub(before); n.EvalSHA != 5 || n.Runs > 5 || n.Runs == 0 {
					t.Errorf("%+v, want each of 5 once at most", n)
				}
			})
		})
	}
}

// A body that was sent after NOSCRIPT is not sent again either.
func TestBodyRunsOnceWhenItsAnswerIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := redistest.Bubble(t)
		c := newClient(t, r.Client(), timeout)
		r.DropReplies(100)
		if o := call(c, one("key")); o.class() != remote.Connection {
			t.Errorf("%v, want class connection", o.err)
		}
		time.Sleep(time.Minute)
		if n := r.Counts(); n.Runs != 1 || n.Eval != 1 || n.EvalSHA != 1 {
			t.Errorf("%+v, want one EVALSHA and one EVAL", n)
		}
	})
}

// On real processes: a server that answers too late, one whose connections break
// while it works, and a Cluster, which repeats on its own.
func TestRealServersRunScriptsOnce(t *testing.T) {
	type target struct {
		redistest.Switches
		rdb redis.UniversalClient
	}
	for name, target := range map[string]func(*testing.T) target{
		"server":  func(t *testing.T) target { s := redistest.Server(t); return target{s, s.Client()} },
		"cluster": func(t *testing.T) target { s := redistest.Cluster(t); return target{s, s.Client()} },
	} {
		t.Run(name, func(t *testing.T) {
			s := target(t)
			c := newClient(t, s.rdb, patience)
			warm(t, c)

			before := s.Counts()
			s.DropReplies(100)
			if o := call(c, one("dropped")); o.class() != remote.Connection {
				t.Errorf("%v, want class connection", o.err)
			}
			if n := s.Counts().Sub(before); n.Runs != 1 {
				t.Errorf("dropped: %+v, want one execution", n)
			}
			before = s.Counts()
			_ = s.rdb.EvalSha(t.Context(), lua.Acquire.SHA(), []string{remote.Key("test", "control")},
				"1", "x", "1", "1", "360", "10000000", "0", "1000000", "0", "0", "0", "0", "0", "0", "0", "0", "0", "-1", "1", "1", "0").Err()
			if n := s.Counts().Sub(before); n.Runs < 2 {
				t.Errorf("a plain command ran %d times: the test shows nothing", n.Runs)
			}
			s.Heal()

			before = s.Counts()
			s.DropReplies(100)
			for _, f := range piped(t, s.rdb, patience, 5) {
				if o := f.wait(); o.class() != remote.Connection {
					t.Errorf("in a pipeline: %v, want class connection", o.err)
				}
			}
			s.Heal()
			if n := s.Counts().Sub(before); n.EvalSHA != 5 {
				t.Errorf("in a pipeline: %+v, want 5 sent", n)
			}

			// Frozen: the server gets to the message when it wakes up.
			late := newClient(t, s.rdb, 100*time.Millisecond)
			warm(t, c) // there is a connection
			s.Freeze()
			if o := call(late, one("frozen")); o.class() != remote.Timeout {
				t.Errorf("%v, want class timeout", o.err)
			}
			s.Thaw()
			all := one("frozen")
			all.Needs[0].Count = 10
			eventually(t, "the late message has run", func() bool {
				return s.rdb.Exists(t.Context(), all.Key).Val() == 1
			})
			if o := call(c, all); o.err != nil || o.Granted[0] != 9 {
				t.Errorf("%+v, %v, want the 9 that one execution has left", o.Answer, o.err)
			}
		})
	}
}
