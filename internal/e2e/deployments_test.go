package e2e

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
	"github.com/resilient-go/limiter/remote"
)

// exactlyFive makes ten concurrent requests on two instances with five per
// minute, each with a client of its own.
func exactlyFive(t *testing.T, key string, client func() redis.UniversalClient) {
	t.Helper()
	var (
		calls [10]Call
		work  sync.WaitGroup
		start = make(chan struct{})
	)
	var lims []*hybrid.Limiter
	for range 2 {
		lim, err := hybrid.New(client(), hybrid.PerMinute(5), quiet,
			hybrid.WithLeaseHorizon(time.Second), hybrid.WithRemoteTimeout(unhurried))
		if err != nil {
			t.Fatal(err)
		}
		lims = append(lims, lim)
	}
	for i := range calls {
		work.Go(func() {
			<-start
			var err error
			if calls[i], err = call(&shared{lim: lims[i%2]}, key, 1); err != nil {
				t.Errorf("Allow: %v", err)
			}
		})
	}
	close(start)
	work.Wait()
	wantExactly(t, 5, calls[:], len(calls))
	for _, lim := range lims {
		if err := lim.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
}

// outageAndBack is the course of a short outage, whatever the kind of server:
// degraded, no error, and back.
func outageAndBack(t *testing.T, client func() redis.UniversalClient, cut, mend func()) {
	t.Helper()
	f := startFleet(t, 2, 5*time.Millisecond, client, hybrid.PerSecond(200), hybrid.WithExpectedInstances(2))
	f.warm(40)
	cut()
	f.each("degraded", (*instance).degraded)
	mend()
	f.each("recovered", func(in *instance) bool { return !in.degraded() })
	f.warm(40)
	f.rest()
	for _, in := range f.instances {
		in.outages(t) // checks the order of the events
		if decidedBy(in.calls, hybrid.SourceDegraded) == 0 {
			t.Error("nothing was decided by the outage policy")
		}
		if s := in.Stats(); s.Degraded || s.Breaker != "closed" {
			t.Errorf("after the recovery: %+v", s)
		}
	}
}

// unhurried is the time-out of clients with which nothing is to go wrong.
const unhurried = 2 * time.Second

func TestCluster(t *testing.T) {
	c := redistest.Cluster(t)
	recommended := func(timeout time.Duration) func() redis.UniversalClient {
		return func() redis.UniversalClient {
			return c.Client(func(o *redis.ClusterOptions) {
				dial := o.Dialer
				*o = *remote.Options(timeout, c.Addr()).Cluster()
				o.Dialer = dial
			})
		}
	}
	defaults := func() redis.UniversalClient { return c.Client() }

	exactlyFive(t, "first", recommended(unhurried))
	outageAndBack(t, recommended(hybrid.DefaultRemoteTimeout), c.Kill, c.RestartWithData)
	exactlyFive(t, "second", defaults)
	outageAndBack(t, defaults, c.Kill, c.RestartWithData)
	exactlyFive(t, "third", defaults)
}

func TestSentinelFailover(t *testing.T) {
	s := redistest.Sentinel(t)
	recommended := func(timeout time.Duration) func() redis.UniversalClient {
		return func() redis.UniversalClient {
			return s.Client(func(o *redis.FailoverOptions) {
				name, sentinels := o.MasterName, o.SentinelAddrs
				*o = *remote.Options(timeout, sentinels...).Failover()
				o.MasterName = name
			})
		}
	}
	exactlyFive(t, "first", recommended(unhurried))
	outageAndBack(t, recommended(hybrid.DefaultRemoteTimeout), s.Kill, s.AwaitFailover)
	exactlyFive(t, "second", recommended(unhurried))
}

func TestSentinelFailoverWithDefaultClient(t *testing.T) {
	s := redistest.Sentinel(t)
	outageAndBack(t, func() redis.UniversalClient { return s.Client() }, s.Kill, s.AwaitFailover)
}

// The scripts are flushed all the time, under a load of half the limit: every
// request passes, and Redis decides all of them.
func TestScriptFlushCostsNothing(t *testing.T) {
	for name, server := range map[string]func(t *testing.T) (redistest.Switches, string){
		"redis": func(t *testing.T) (redistest.Switches, string) {
			r := redistest.Server(t)
			return r, r.Addr()
		},
		"miniredis": func(t *testing.T) (redistest.Switches, string) {
			m := redistest.MiniTCP(t)
			return m, m.Addr()
		},
	} {
		t.Run(name, func(t *testing.T) {
			server, addr := server(t)
			const timeout = 450 * time.Millisecond // a hiccup of the machine is no outage
			f := startFleet(t, 2, 10*time.Millisecond,
				func() redis.UniversalClient { return clientOf(t, addr, timeout) },
				hybrid.PerSecond(400), hybrid.WithRemoteTimeout(timeout))
			tick := time.NewTicker(3 * time.Millisecond)
			defer tick.Stop()
			for range 500 {
				<-tick.C
				server.ScriptFlush()
			}
			f.rest()
			bodies := uint64(0)
			for _, in := range f.instances {
				for _, c := range in.calls {
					if !c.Allowed || c.Source == hybrid.SourceDegraded {
						t.Errorf("a request was decided wrongly: %+v", c)
					}
				}
				if events := slices.DeleteFunc(in.events, anyTime); len(events) > 0 {
					t.Errorf("events %+v, want none but of instances", events)
				}
				if len(in.calls) < 50 {
					t.Errorf("only %d calls were made", len(in.calls))
				}
				bodies += in.Stats().Scripts
			}
			if n := server.Counts().NoScript; n < 10 || bodies < 10 {
				t.Errorf("scripts were missing %d times and sent %d times: the flushes hit nothing", n, bodies)
			}
		})
	}
}
