package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
	"github.com/resilient-go/limiter/remote"
)

// The set-up of an outage: four instances under twice the limit.
const (
	fleetSize = 4
	perSecond = 400
	burstSize = 200
	pauseEach = time.Second / (2 * perSecond / fleetSize)
)

func TestOutageKilledAndRestartedWithData(t *testing.T) {
	r := redistest.Server(t)
	outageOf(t, r, false, r.Kill, r.RestartWithData)
}

func TestOutageKilledAndRestartedEmpty(t *testing.T) {
	r := redistest.Server(t)
	outageOf(t, r, false, r.Kill, r.RestartEmpty)
}

func TestOutageFrozenAndThawed(t *testing.T) {
	r := redistest.Server(t)
	outageOf(t, r, false, r.Freeze, r.Thaw)
}

func TestOutageKilledWithDefaultClient(t *testing.T) {
	r := redistest.Server(t)
	outageOf(t, r, true, r.Kill, r.RestartWithData)
}

func TestOutageFrozenWithDefaultClient(t *testing.T) {
	r := redistest.Server(t)
	outageOf(t, r, true, r.Freeze, r.Thaw)
}

// outageOf cuts Redis off under load, mends it two seconds' worth of the limit
// later, and looks at every call.
func outageOf(t *testing.T, r *redistest.Redis, defaults bool, cut, mend func()) {
	t.Helper()
	client := func() redis.UniversalClient {
		if defaults {
			return r.Client()
		}
		return clientOf(t, r.Addr(), hybrid.DefaultRemoteTimeout)
	}
	control := startNoise(fleetSize*callersEach, callersEach*pauseEach)
	f := startFleet(t, fleetSize, pauseEach, client, hybrid.PerSecond(perSecond).WithBurst(burstSize),
		hybrid.WithExpectedInstances(fleetSize))
	f.meet()
	f.warm(perSecond / 2) // the burst is used up

	cutAt := stamp()
	cut()
	f.each("degraded", (*instance).degraded)
	eventually(t, "the outage goes on for a while", func() bool {
		n := 0
		for _, in := range f.instances {
			n += in.since(cutAt, func(c Call) bool { return c.Allowed && c.Source == hybrid.SourceDegraded })
		}
		return n >= 2*perSecond
	})
	mend()
	mended := stamp()
	f.each("recovered", func(in *instance) bool { return !in.degraded() })
	if took := time.Duration(stamp() - mended); took > 10*time.Second {
		t.Errorf("the return took %v, want a few seconds", took)
	}
	f.warm(40)
	f.rest()
	control.end()

	durations(t, f, control)
	totals(t, f, control, cutAt, mended)
	for _, in := range f.instances {
		countsAddUp(t, f, in)
	}
}

// clientOf is a client with the recommended options, closed after the test.
func clientOf(t *testing.T, addr string, timeout time.Duration) redis.UniversalClient {
	t.Helper()
	c := redis.NewUniversalClient(remote.Options(timeout, addr))
	t.Cleanup(func() { c.Close() })
	return c
}

// durations checks how long the calls waited, apart from what the machine adds.
func durations(t *testing.T, f *fleet, control *noise) {
	t.Helper()
	const timeout = hybrid.DefaultRemoteTimeout
	var all []time.Duration
	waited, decided := 0, 0 // of those who came after the breaker had opened
	for _, in := range f.instances {
		pairs := in.outages(t)
		for _, c := range in.calls {
			took := control.net(c)
			all = append(all, took)
			for _, o := range pairs {
				if c.Start >= o.fromTold && c.End < instant(o.to) && c.Source == hybrid.SourceDegraded {
					decided++
					if took > timeout*9/10 {
						waited++
					}
				}
			}
		}
	}
	slices.Sort(all)
	p99, longest := all[len(all)*99/100], all[len(all)-1]
	slow, worst := control.slow(timeout*9/10), control.worst()
	t.Logf("%d calls, 99%% within %v, the longest %v; control: longest delay %v, %d slow; %d of %d waited after the opening",
		len(all), p99, longest, worst, slow, waited, decided)
	if p99 > time.Second || longest > 2*time.Second {
		t.Errorf("99%% of the calls took up to %v and one %v, want 1s and 2s at most on any machine", p99, longest)
	}
	if most := 2*timeout + 4*worst; longest > most {
		t.Errorf("one call took %v, want %v and what the machine adds: up to %v with a longest delay of %v in the control",
			longest, timeout, most, worst)
	}
	if decided < perSecond {
		t.Errorf("only %d calls were decided between opening and recovery", decided)
	}
	if waited > slow+2 {
		t.Errorf("%d calls waited for Redis after the breaker had opened, want none; the control had %d slow ones", waited, slow)
	}
}

// totals checks what the fleet admitted from the opening of the last breaker to
// the recovery of the first: the limit, as if nothing had happened.
func totals(t *testing.T, f *fleet, control *noise, cut, mended int64) {
	t.Helper()
	from, to := cut, stamp()
	for _, in := range f.instances {
		for _, o := range in.outages(t) {
			if instant(o.to) > mended { // the one that was made, and not a hiccup before
				from, to = max(from, instant(o.from)), min(to, instant(o.to))
				break
			}
		}
	}
	between := func(from, to int64) (n int, worth float64) {
		for _, in := range f.instances {
			for _, c := range in.calls {
				if c.Allowed && c.Start >= from && c.End < to {
					n++
				}
			}
		}
		return n, perSecond * time.Duration(to-from).Seconds()
	}
	n, worth := between(from, to)
	t.Logf("%d admitted in %v, which is worth %.0f", n, time.Duration(to-from), worth)
	if float64(n) < 0.95*worth || float64(n) > 1.1*worth+burstSize {
		t.Errorf("%d requests were admitted in an outage of %v, want from 95%% of %.0f to 110%% of it and a burst of %d",
			n, time.Duration(to-from), worth, burstSize)
	}
	// After a second under twice the limit there is no burst any more, but for what
	// gathers while the machine stands still.
	if from += int64(time.Second); to-from < int64(400*time.Millisecond) {
		t.Fatal("the outage was over in no time: too much was admitted")
	}
	n, worth = between(from, to)
	if most := 1.1*worth + perSecond*control.stood().Seconds(); float64(n) > most {
		t.Errorf("%d requests were admitted in the rest of the outage, want %.0f, at most %.0f", n, worth, most)
	}
}

// countsAddUp compares the events and Stats of an instance with its calls.
func countsAddUp(t *testing.T, f *fleet, in *instance) {
	t.Helper()
	s := in.Stats()
	allowed, refused := map[hybrid.Source]uint64{}, map[hybrid.Source]uint64{}
	for _, c := range in.calls {
		if c.Allowed {
			allowed[c.Source]++
		} else {
			refused[c.Source]++
		}
	}
	for src := hybrid.SourcePrefilter; src <= hybrid.SourceDegraded; src++ {
		if s.Allowed[src] != allowed[src] || s.Refused[src] != refused[src] {
			t.Errorf("Stats of %v: %d allowed and %d refused, want %d and %d", src,
				s.Allowed[src], s.Refused[src], allowed[src], refused[src])
		}
	}
	if s.Degraded || s.Breaker != "closed" || s.EventsDropped != 0 || s.EventPanics != 0 {
		t.Errorf("after the recovery: %+v", s)
	}

	// A call is certainly counted in an outage if it lies between the two events,
	// and certainly not if it ends before the first or begins after the second.
	var total time.Duration
	for _, o := range in.outages(t) {
		total += o.to.Duration
		var least, most [2]uint64
		for _, c := range in.calls {
			if c.Source != hybrid.SourceDegraded {
				continue
			}
			k := 0
			if !c.Allowed {
				k = 1
			}
			if c.Start >= o.fromTold && c.End < instant(o.to) {
				least[k]++
			}
			if c.End >= instant(o.from) && c.Start <= o.toTold {
				most[k]++
			}
		}
		if a := o.to.Allowed; a < least[0] || a > most[0] {
			t.Errorf("Recovered tells %d allowed, want %d to %d", a, least[0], most[0])
		}
		if r := o.to.Refused; r < least[1] || r > most[1] {
			t.Errorf("Recovered tells %d refused, want %d to %d", r, least[1], most[1])
		}
		if instant(o.from) > f.known && (o.from.Instances != fleetSize || o.from.InstancesAssumed) {
			t.Errorf("Degraded tells %d instances, assumed: %v; want %d as told", o.from.Instances, o.from.InstancesAssumed, fleetSize)
		}
		if took := o.to.At.Sub(o.from.At); o.to.Duration != took {
			t.Errorf("Recovered tells %v, want %v from event to event", o.to.Duration, took)
		}
	}
	if s.DegradedFor != total {
		t.Errorf("Stats tells %v degraded in all, the events %v", s.DegradedFor, total)
	}
}
