package remote_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/internal/redistest"
	"github.com/resilient-go/limiter/remote"
)

func TestCallsShareRoundTrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := redistest.Bubble(t)
		rdb, h := r.Client(onePool), &hook{}
		rdb.AddHook(h)
		connect(t, r, rdb)
		c := newClient(t, rdb, timeout)
		warm(t, c)
		h.taken()
		r.Delay(10 * time.Millisecond)
		before, begun := r.Counts(), time.Now()

		first, rest := many(c, remote.MaxInFlight), many(c, 2*remote.MaxBatch+50)
		allAre(t, first, remote.None, begun.Add(10*time.Millisecond))
		allAre(t, rest, remote.None, begun.Add(20*time.Millisecond))

		sizes := h.taken()
		want := slices.Concat(slices.Repeat([]int{1}, remote.MaxInFlight), []int{50, remote.MaxBatch, remote.MaxBatch})
		slices.Sort(sizes)
		if !slices.Equal(sizes, want) {
			t.Errorf("round trips of %v calls, want %v", sizes, want)
		}
		n := r.Counts().Sub(before)
		if calls := len(first) + len(rest); n.EvalSHA != calls || n.Runs != calls || n.Eval != 0 {
			t.Errorf("%+v, want %d scripts", n, calls)
		}
	})
}

// Each answer belongs to its own message, however they are packed.
func TestAnswersFindTheirCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := redistest.Bubble(t)
		c := newClient(t, r.Client(), timeout)
		warm(t, c)
		r.Delay(time.Millisecond)
		var calls []future
		for i := range 200 {
			m := one("key" + string(rune('A'+i)))
			m.Needs[0].Count = int64(i%10) + 1
			calls = append(calls, start(c, m))
		}
		for i, f := range calls {
			if o := f.wait(); o.err != nil || o.Granted[0] != int64(i%10)+1 || o.Tokens != int64(9-i%10)*remote.Unit {
				t.Errorf("call %d: %+v, %v", i, o.Answer, o.err)
			}
		}
	})
}

func TestFrozenServerAnswersNobodyLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := redistest.Bubble(t)
		rdb := r.Client(onePool)
		connect(t, r, rdb)
		c := newClient(t, rdb, timeout)
		warm(t, c)
		before := r.Counts()
		r.Freeze()
		begun := time.Now()
		stuck, queued := many(c, remote.MaxInFlight), many(c, 300)
		allAre(t, stuck, remote.Timeout, begun.Add(timeout))
		allAre(t, queued, remote.Saturated, begun.Add(timeout))

		// With all of them stuck nobody else waits, not even for a moment.
		allAre(t, many(c, 10), remote.Saturated, begun.Add(timeout))
		time.Sleep(time.Second)
		allAre(t, many(c, 10), remote.Saturated, begun.Add(timeout+time.Second))

		// The server wakes up and runs what it was sent. Nobody gets these answers,
		// and nobody who queued was sent.
		r.Thaw()
		time.Sleep(time.Second)
		for i, f := range append(stuck, queued...) {
			if len(f) != 0 {
				t.Errorf("call %d was answered twice", i)
			}
		}
		if n := r.Counts().Sub(before); n.Runs != remote.MaxInFlight || n.EvalSHA != remote.MaxInFlight {
			t.Errorf("%+v, want %d scripts", n, remote.MaxInFlight)
		}
		m := one("key0")
		m.Needs[0].Count = 20
		if o := call(c, m); o.err != nil || o.Granted[0] != 9 { // it was charged while frozen
			t.Errorf("%+v, %v, want 9 granted", o.Answer, o.err)
		}
	})
}

// A place that a stuck call takes is free as soon as go-redis lets go of it.
func TestRecommendedClientLetsGoInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := redistest.Bubble(t)
		c := newClient(t, recommended(t, r), timeout)
		warm(t, c)
		r.Freeze()
		for range 3 {
			begun := time.Now()
			allAre(t, many(c, remote.MaxInFlight), remote.Timeout, begun.Add(timeout))
			time.Sleep(timeout)
		}
		if stuck := c.Close(); stuck != 0 {
			t.Errorf("%d calls are stuck", stuck)
		}
	})
}

// recommended is a client of a server in a bubble with the recommended options.
func recommended(t *testing.T, r *redistest.Mini) *redis.Client {
	o := remote.Options(timeout, r.Addr()).Simple()
	o.Dialer = r.Dial
	rdb := redis.NewClient(o)
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

// Some places stuck: the others serve everybody.
func TestStuckCallsLeaveRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := redistest.Bubble(t)
		rdb := r.Client(onePool)
		connect(t, r, rdb)
		c := newClient(t, rdb, timeout)
		warm(t, c)
		r.Freeze()
		begun := time.Now()
		stuck := many(c, remote.MaxInFlight-1)
		allAre(t, stuck, remote.Timeout, begun.Add(timeout))
		last := start(c, one("last"))
		time.Sleep(timeout / 2)
		queued := many(c, 10)
		allAre(t, []future{last}, remote.Timeout, begun.Add(2*timeout))
		allAre(t, queued, remote.Saturated, begun.Add(2*timeout))
		r.Thaw()
		time.Sleep(time.Second)
		if o := call(c, one("key")); o.err != nil {
			t.Error(o.err)
		}
	})
}

// A call that waited in the queue for the whole time-out is not sent: its caller
// has gone, and it would be charged for nothing.
func TestCallsThatQueuedTooLongAreNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := redistest.Bubble(t)
		rdb := r.Client(onePool)
		connect(t, r, rdb)
		c := newClient(t, rdb, timeout)
		warm(t, c)
		r.Delay(40 * time.Millisecond)
		before, begun := r.Counts(), time.Now()
		calls := many(c, remote.MaxInFlight+remote.MaxInFlight*remote.MaxBatch+30)
		sent := calls[:len(calls)-30]
		allAre(t, sent[:remote.MaxInFlight], remote.None, begun.Add(40*time.Millisecond))
		allAre(t, sent[remote.MaxInFlight:], remote.None, begun.Add(80*time.Millisecond))
		allAre(t, calls[len(sent):], remote.Saturated, begun.Add(80*time.Millisecond))
		if n := r.Counts().Sub(before).EvalSHA; n != len(sent) {
			t.Errorf("%d sent, want %d", n, len(sent))
		}
		if o := call(c, one("key")); o.err != nil {
			t.Error(o.err)
		}
	})
}

func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := redistest.Bubble(t)
		c := newClient(t, r.Client(), timeout)
		warm(t, c)
		r.Freeze()
		begun := time.Now()
		calls := many(c, remote.MaxInFlight+remote.MaxQueue)
		beyond := many(c, 5)
		allAre(t, beyond, remote.Saturated, begun) // at once
		allAre(t, calls[:remote.MaxInFlight], remote.Timeout, begun.Add(timeout))
		allAre(t, calls[remote.MaxInFlight:], remote.Saturated, begun.Add(timeout))
	})
}

// What go-redis gets is a context of the client's own, which ends some time after
// the call has been answered, and with nobody's patience.
func TestCallsAreDetached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := redistest.Bubble(t)
		rdb, h := r.Client(), &hook{}
		rdb.AddHook(h)
		c := newClient(t, rdb, timeout)
		warm(t, c)
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, ctx := range h.ctxs {
			if d, ok := ctx.Deadline(); !ok || !d.Equal(time.Now().Add(4*timeout)) {
				t.Errorf("the deadline is %v, %v, want %v from now", d, ok, 4*timeout)
			}
		}
		if len(h.ctxs) == 0 {
			t.Error("nothing was seen")
		}
	})
}
