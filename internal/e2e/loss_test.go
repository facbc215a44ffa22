package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
	"github.com/resilient-go/limiter/remote"
)

// The limit of the tests on processes that are lost.
var lossLimit = hybrid.PerSecond(400).WithBurst(1000)

// A holder is a process that holds permits on lease and has stopped working, and
// a survivor is an instance in this process.
type holder struct {
	*process
	calls    []Call // of the holder, then of all
	out      int    // permits on lease
	end      int64  // when the lease ends at the earliest
	survivor *shared
}

// loseHolder starts a process, lets it work and then does the worst to it.
func loseHolder(t *testing.T, addr string, do func(*process)) *holder {
	t.Helper()
	setup := Setup{
		ID: "it", Addr: addr, Limit: lossLimit.String(),
		Horizon: 500 * time.Millisecond, Timeout: time.Second,
	}
	for try := range 10 {
		setup.Name = fmt.Sprint("lost", try)
		h := &holder{process: startProcess(t)}
		order[Nothing](h.process, "Open", setup)
		from := stamp()
		h.calls = order[[]Call](h.process, "Load", LoadOrder{
			ID: "it", Key: "key", From: from, To: from + int64(400*time.Millisecond),
			Callers: 2, Pause: 4 * time.Millisecond, Most: 1, Seed: 1,
		})
		do(h.process)

		l, err := newLimiter(setup)
		if err != nil {
			t.Fatal(err)
		}
		h.survivor = l.(*shared)
		t.Cleanup(func() {
			if err := h.survivor.end(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
		if h.out, h.end = rightsOut(t, h.survivor, remote.Key(setup.Name, "key")); h.out > 0 {
			return h
		}
		h.kill() // it came to giving its idle lease back before
	}
	t.Fatal("the process never held a lease when it was lost")
	return nil
}

// drain makes requests until one is refused, or n if that is not 0.
func (h *holder) drain(t *testing.T, n int) (own []Call) {
	t.Helper()
	for len(own) == 0 || own[len(own)-1].Allowed && len(own) < 10_000 || len(own) < n {
		c, err := call(h.survivor, "key", 1)
		if err != nil {
			t.Fatal(err)
		}
		own = append(own, c)
	}
	h.calls = append(h.calls, own...)
	return own
}

// awaitFull waits until the bucket is full to the brim, which means that no lease
// is left.
func (h *holder) awaitFull(t *testing.T) {
	t.Helper()
	eventually(t, "the permits of the lost process come back", func() bool {
		res, err := h.survivor.lim.Peek(t.Context(), "key")
		if err != nil {
			t.Fatal(err)
		}
		full := res.Remaining == lossLimit.Burst() && res.Source == hybrid.SourceRedis
		if full && stamp() < h.end {
			t.Fatalf("all of %d tokens are there and the lease has not ended", lossLimit.Burst())
		}
		return full
	})
}

// check holds all calls against the limit.
func (h *holder) check(t *testing.T) {
	t.Helper()
	if x := excess(h.calls, lossLimit, 1); x > rounding {
		t.Errorf("%.3f tokens too many in one window", x)
	}
	if n := decidedBy(h.calls, hybrid.SourceDegraded); n > 0 {
		t.Errorf("%d decisions without Redis: nothing was tested", n)
	}
}

// A process that holds permits is killed. Nobody else gets them while its lease
// lasts, then the bucket fills up to the brim again, and no window ever admits
// more than the bucket.
func TestLeaseOfAKilledProcessComesBack(t *testing.T) {
	h := loseHolder(t, redistest.Server(t).Addr(), (*process).kill)
	own := h.drain(t, 0)
	most := float64(lossLimit.Burst()-h.out) + float64(lossLimit.Count())*span(own).Seconds()
	if n := admitted(own); n < 20 || stamp() < h.end && float64(n) > most {
		t.Errorf("%d requests passed with %d permits out on lease, want 20 to %.1f", n, h.out, most)
	}
	h.awaitFull(t)
	if n := admitted(h.drain(t, lossLimit.Burst()+50)); n < lossLimit.Burst() {
		t.Errorf("a burst of %d passed, want %d: not all tokens have come back", n, lossLimit.Burst())
	}
	h.check(t)
}

// A process that holds permits stands still until its lease has ended and others
// have used up the limit. Then it goes on, and must not spend what it held.
func TestLeaseOfAStoppedProcessIsNotSpent(t *testing.T) {
	h := loseHolder(t, redistest.Server(t).Addr(), func(p *process) { p.signal("STOP") })
	h.awaitFull(t)
	h.drain(t, 0)
	late := make(chan []Call)
	go func() {
		late <- order[[]Call](h.process, "Burst", BurstOrder{ID: "it", Keys: []string{"key"}, Count: 300})
	}()
	h.signal("CONT")
	h.calls = append(h.calls, <-late...)
	h.check(t)
}

// rightsOut reads how many tokens of a bucket are out on lease, and when the
// last lease ends at the earliest.
func rightsOut(t *testing.T, s *shared, key string) (tokens int, end int64) {
	t.Helper()
	now := stamp()
	v, err := s.rdb.HMGet(t.Context(), key, "o", "x").Result()
	if err != nil {
		t.Fatal(err)
	}
	var out, last int64
	if v[0] != nil {
		if _, err := fmt.Sscan(fmt.Sprint(v[0], " ", v[1]), &out, &last); err != nil {
			t.Fatal(err)
		}
	}
	clock, err := s.rdb.Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return int(out / remote.Unit), now + (last-clock.UnixMicro())*int64(time.Microsecond)
}

// A Redis that comes back with its data remembers who has used up his limit. One
// that comes back empty is told by the instance that does.
func TestRestartKeepsOrLosesTheLevel(t *testing.T) {
	for _, c := range []struct {
		name    string
		restart func(*redistest.Redis)
		lost    uint64 // keys whose state was lost
	}{
		{"with data", (*redistest.Redis).RestartWithData, 0},
		{"empty", (*redistest.Redis).RestartEmpty, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := redistest.Server(t)
			// An hour, so that nothing is gained meanwhile.
			lim, err := hybrid.New(clientOf(t, r.Addr(), 2*time.Second), hybrid.PerHour(5), quiet,
				hybrid.WithLeaseHorizon(time.Second), hybrid.WithRemoteTimeout(2*time.Second))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = lim.Close() }()
			l := &shared{lim: lim}
			tenOf := func() (calls []Call) {
				for range 10 {
					c, err := call(l, "key", 1)
					if err != nil {
						t.Fatal(err)
					}
					calls = append(calls, c)
				}
				return calls
			}
			if n := admitted(tenOf()); n != 5 {
				t.Fatalf("%d passed before the restart, want 5", n)
			}
			r.Kill()
			down := tenOf()
			if n := admitted(down); n != 0 {
				t.Errorf("%d passed while Redis was down, want 0 as the limit was used up: %+v", n, down)
			}
			c.restart(r)
			eventually(t, "the breaker closes", func() bool { return lim.Stats().Breaker == "closed" })
			// A refusal of Redis stands for a horizon; then it is asked again.
			var after []Call
			eventually(t, "Redis is asked", func() bool {
				c, err := call(l, "key", 1)
				if err != nil {
					t.Fatal(err)
				}
				after = append(after, c)
				return c.Source == hybrid.SourceRedis
			})
			after = append(after, tenOf()...)
			if n := admitted(after); n != 0 || decidedBy(after, hybrid.SourceDegraded) > 0 {
				t.Errorf("%d passed after the restart, want none, by Redis: %+v", n, after)
			}
			if n := lim.Stats().StateLost; n != c.lost {
				t.Errorf("the state of %d keys was lost, want %d", n, c.lost)
			}
		})
	}
}
