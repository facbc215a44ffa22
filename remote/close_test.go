package remote_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/resilient-go/limiter/internal/redistest"
	"github.com/resilient-go/limiter/remote"
)

func TestCloseOfAnIdleClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := redistest.Bubble(t)
		rdb := r.Client()
		c := newClient(t, rdb, timeout)
		warm(t, c)
		begun := time.Now()
		for range 2 {
			if stuck := c.Close(); stuck != 0 || time.Since(begun) != 0 {
				t.Errorf("%d stuck after %v, want none at once", stuck, time.Since(begun))
			}
		}
		if o := call(c, one("key")); o.class() != remote.Closed {
			t.Errorf("%v, want class closed", o.err)
		}
		if err := c.Probe(one("key")); remote.ClassOf(err) != remote.Closed {
			t.Errorf("%v, want class closed", err)
		}
		if err := c.Peek("key", tenPerHour, nil); remote.ClassOf(err) != remote.Closed {
			t.Errorf("%v, want class closed", err)
		}
		if err := rdb.Ping(t.Context()).Err(); err != nil {
			t.Errorf("the caller's client does not work any more: %v", err)
		}
	})
}

func TestCloseFailsWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := redistest.Bubble(t)
		c := newClient(t, r.Client(), timeout)
		warm(t, c)
		r.Freeze()
		calls := many(c, remote.MaxInFlight+150)
		probe := make(chan error, 1)
		go func() { probe <- c.Probe(one("probe")) }()
		time.Sleep(10 * time.Millisecond)

		begun := time.Now()
		var closers sync.WaitGroup
		for range 3 {
			closers.Go(func() {
				// go-redis waits for the frozen server, whatever we do.
				if stuck := c.Close(); stuck != remote.MaxInFlight+1 {
					t.Errorf("%d stuck, want %d", stuck, remote.MaxInFlight+1)
				}
			})
		}
		allAre(t, calls, remote.Closed, begun)
		if err := <-probe; remote.ClassOf(err) != remote.Closed {
			t.Errorf("%v, want class closed", err)
		}
		closers.Wait()
		if took := time.Since(begun); took < remote.CloseGrace || took > 2*remote.CloseGrace {
			t.Errorf("Close took %v, want %v and little more", took, remote.CloseGrace)
		}
		r.Thaw()
		time.Sleep(time.Second)
		if stuck := c.Close(); stuck != 0 {
			t.Errorf("%d stuck although the server has answered", stuck)
		}
		for _, f := range calls {
			if len(f) != 0 {
				t.Fatal("a call was answered twice")
			}
		}
	})
}

// A client that heeds contexts and time-outs lets go by itself.
func TestCloseWithTheRecommendedClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := redistest.Bubble(t)
		c := newClient(t, recommended(t, r), timeout)
		warm(t, c)
		r.Freeze()
		calls := many(c, 3)
		time.Sleep(timeout - 10*time.Millisecond)
		begun := time.Now()
		if stuck := c.Close(); stuck != 0 {
			t.Errorf("%d stuck, want none: go-redis gives up in 10 ms", stuck)
		}
		allAre(t, calls, remote.Closed, begun)
	})
}

func TestCloseOfARealServer(t *testing.T) {
	s := redistest.Server(t)
	rdb := s.Client(onePool)
	connect(t, s, rdb)
	c := newClient(t, rdb, patience)
	warm(t, c)
	before := s.Counts()
	s.Freeze()
	calls := many(c, remote.MaxInFlight+10)
	eventually(t, "the messages are sent", func() bool { return s.Counts().Sub(before).EvalSHA == remote.MaxInFlight })
	c.Close()
	for _, f := range calls {
		if o := f.wait(); o.class() != remote.Closed {
			t.Errorf("%v, want class closed", o.err)
		}
	}
	s.Thaw()
	eventually(t, "go-redis lets go", func() bool { return c.Close() == 0 })
}
