package e2e

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// A trial is one random set-up of limiters and load.
type trial struct {
	limit     hybrid.Limit
	share     float64
	instances int // per process
	loads     []LoadOrder
	setup     Setup
}

// lasts is for how long a trial makes requests.
const lasts = 450 * time.Millisecond

func newTrial(rnd *rand.Rand, number, processes int, addr string) trial {
	pick := func(ds ...time.Duration) time.Duration { return ds[rnd.IntN(len(ds))] }
	rate := 50 + rnd.IntN(1500)
	tr := trial{
		limit:     hybrid.PerSecond(rate).WithBurst(6 + rnd.IntN(rate/3)),
		share:     []float64{1, 1, 1, 0.5 + rnd.Float64()/2}[rnd.IntN(4)],
		instances: 1 + rnd.IntN(3),
	}
	tr.setup = Setup{
		Addr: addr, Name: fmt.Sprint("trial", number), Limit: tr.limit.String(), Share: tr.share,
		Horizon: pick(50, 200, 200, 500, 1000) * time.Millisecond,
	}
	// As long as may be, so that a hiccup of the machine is no outage.
	tr.setup.Timeout = max(500*time.Millisecond, 5*tr.setup.Horizon)/2 - 10*time.Millisecond

	// The load is on one key or two, divided unevenly between the instances. Either
	// it goes from once to eight times the limit all the time, or it is low, so that
	// there is much to hold on lease, rests, and ends in a rush.
	keys, most := 1+rnd.IntN(2), 1+rnd.IntN(3)
	low := rnd.IntN(2) == 0
	demand := float64(rate) * []float64{1, 2, 4, 8}[rnd.IntN(4)]
	for i := range processes * tr.instances {
		for k := range keys {
			part := (0.2 + 1.6*rnd.Float64()) / float64(processes*tr.instances)
			load := func(demand float64, from, to time.Duration, pulse time.Duration) {
				o := LoadOrder{
					ID: fmt.Sprintf("trial%d/%d", number, i), Key: fmt.Sprint("key", k),
					From: int64(from), To: int64(to), Callers: 1 + rnd.IntN(4), Most: most, Seed: rnd.Uint64(), Pulse: pulse,
				}
				o.Pause = time.Duration(float64(time.Second) * float64(o.Callers) * (1 + float64(most)) / 2 / (part * demand))
				tr.loads = append(tr.loads, o)
			}
			if low {
				load(0.4*float64(rate), 0, lasts*6/10, 0)
				load(10*float64(rate), lasts*7/10, lasts, 0)
			} else {
				load(demand, 0, lasts, pick(0, 0, 50, 120, 300)*time.Millisecond)
			}
		}
	}
	return tr
}

// run makes the requests and returns them by instance.
func (tr trial) run(t *testing.T, ps []*process) map[string][]Call {
	t.Helper()
	where := func(o LoadOrder) *process { // the first instances are in the first process, and so on
		for i := range len(ps) * tr.instances {
			if o.ID == fmt.Sprintf("%s/%d", tr.setup.Name, i) {
				return ps[i/tr.instances]
			}
		}
		panic("an order for nobody")
	}
	open := map[string]*process{}
	for _, o := range tr.loads {
		if open[o.ID] == nil {
			open[o.ID] = where(o)
			tr.setup.ID = o.ID
			order[Nothing](open[o.ID], "Open", tr.setup)
		}
	}
	from := stamp() + int64(10*time.Millisecond)
	answers := make([][]Call, len(tr.loads))
	together(make([]*process, len(tr.loads)), func(i int, _ *process) []Call {
		o := tr.loads[i]
		o.From, o.To = from+o.From, from+o.To
		answers[i] = order[[]Call](open[o.ID], "Load", o)
		return nil
	})
	calls := map[string][]Call{}
	for i, o := range tr.loads {
		calls[o.ID] = append(calls[o.ID], answers[i]...)
	}
	for id, p := range open {
		order[Nothing](p, "Close", id)
	}
	return calls
}

// In every window of length w no more is admitted than burst + rate·w, whatever
// the set-up, and no more than the share of it by one instance.
func TestNoWindowAdmitsMoreThanTheBucket(t *testing.T) {
	trials := normally(20, 200)
	ps := []*process{startProcess(t), startProcess(t)}
	addrs := []string{redistest.Server(t).Addr(), redistest.MiniTCP(t).Addr()}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))

	redone, leased, near := 0, 0, 0
	for n := 0; n < trials+redone; n++ {
		tr := newTrial(rnd, n, len(ps), addrs[n%len(addrs)])
		byInstance := tr.run(t, ps)
		byKey := map[string][]Call{}
		degraded := 0
		for id, calls := range byInstance {
			degraded += decidedBy(calls, hybrid.SourceDegraded)
			leased += decidedBy(calls, hybrid.SourceLease)
			for _, c := range calls {
				byKey[c.Key] = append(byKey[c.Key], c)
				byKey[id+" "+c.Key] = append(byKey[id+" "+c.Key], c)
			}
		}
		// A machine that stands still for so long is an outage to a limiter, and the
		// bound in an outage is another one.
		if degraded > 0 {
			if redone++; redone > trials/4 {
				t.Fatalf("%d of %d trials had decisions without Redis", redone, n+1)
			}
			continue
		}
		nearest := math.Inf(-1)
		for who, calls := range byKey {
			share := tr.share
			if slices.Contains([]string{"key0", "key1"}, who) {
				share = 1
				nearest = max(nearest, excess(calls, tr.limit, share))
			}
			if x := excess(calls, tr.limit, share); x > rounding {
				t.Errorf("%s: %.3f tokens too many in one window under %v times %v: %+v", who, x, tr.limit, share, tr)
			}
		}
		if nearest > -float64(tr.limit.Burst())/4 {
			near++
		}
	}
	// The bound was not kept by refusing everything or by asking for everything.
	t.Logf("%d trials came close to the bound, %d requests were decided by leases, %d trials were made again", near, leased, redone)
	if near < trials/10 || leased < 10*trials {
		t.Errorf("%d of %d trials came close to the bound and %d requests were decided by leases: hardly anything was tested", near, trials, leased)
	}
}
