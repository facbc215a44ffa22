package hybrid_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// faults are ways for Redis to fail, by the class that they are told as.
var faults = []struct {
	name  string
	begin func(r *redistest.Mini)
	end   func(r *redistest.Mini)
	class string
	fatal bool // opens the breaker at once
}{
	{"killed", (*redistest.Mini).Kill, (*redistest.Mini).RestartWithData, "connection", false},
	{"frozen", (*redistest.Mini).Freeze, (*redistest.Mini).Thaw, "timeout", false},
	{"cut off", (*redistest.Mini).Partition, (*redistest.Mini).Heal, "timeout", false},
	answers("LOADING Redis is loading the dataset in memory", "unavailable", false),
	answers("READONLY You can't write against a read only replica.", "unavailable", false),
	answers("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", "unavailable", false),
	answers("CLUSTERDOWN The cluster is down", "unavailable", false),
	answers("OOM command not allowed when used memory > 'maxmemory'.", "unavailable", false),
	answers("BUSY Redis is busy running a script.", "unavailable", false),
	answers("NOREPLICAS Not enough good replicas to write.", "unavailable", false),
	answers("MISCONF Redis is configured to save RDB snapshots", "unavailable", false),
	answers("ERR max number of clients reached", "unavailable", false),
	answers("NOAUTH Authentication required.", "forbidden", true),
	answers("WRONGPASS invalid username-password pair", "forbidden", true),
	answers("NOPERM this user has no permissions to run the 'evalsha' command", "forbidden", true),
	answers("ERR unknown command 'EVALSHA'", "script", true),
	answers("FANCY an error that nobody knows", "other", false),
}

func answers(text, class string, fatal bool) struct {
	name       string
	begin, end func(r *redistest.Mini)
	class      string
	fatal      bool
} {
	return struct {
		name       string
		begin, end func(r *redistest.Mini)
		class      string
		fatal      bool
	}{text, func(r *redistest.Mini) { r.FailWith(text) }, (*redistest.Mini).Heal, class, fatal}
}

// TestOutageOfEachKind: nobody waits longer than the time-out, and nobody at all
// once the breaker is open; Redis is used again by itself; the events tell it.
func TestOutageOfEachKind(t *testing.T) {
	for _, fault := range faults {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			events := new(journal)
			lim := start(t, r, hybrid.PerSecond(100), hybrid.WithExpectedInstances(4), hybrid.WithEvents(events.add))
			warm(t, lim)
			fault.begin(r)
			calls := 0
			for lim.Stats().Breaker == "closed" {
				d := took(func() {
					// A new key each time, for one that has nothing to decide by.
					if res := allowN(t, lim, fmt.Sprint(calls), 1); !res.Allowed || res.Source != hybrid.SourceDegraded {
						t.Fatalf("%s: %+v", fault.name, res)
					}
				})
				if d > hybrid.DefaultRemoteTimeout {
					t.Errorf("%s: a caller waited %v", fault.name, d)
				}
				settle()
				if calls++; calls > 5 {
					t.Fatalf("%s: the breaker is closed after %d failures", fault.name, calls)
				}
			}
			if fault.fatal {
				want(t, fault.name+": failures until the breaker opens", calls, 1)
			}
			opened := time.Now()
			for i := range 2000 {
				d := took(func() { want(t, fault.name+": source", allowN(t, lim, fmt.Sprint(i), 1).Source, hybrid.SourceDegraded) })
				want(t, fault.name+": time with the breaker open", d, 0)
				time.Sleep(time.Millisecond)
			}
			fault.end(r)
			ended := time.Now()
			for lim.Stats().Degraded {
				time.Sleep(time.Millisecond)
				settle()
			}
			// Probes come at most 960 ms apart.
			if d := time.Since(ended); d > time.Second {
				t.Errorf("%s: degraded for %v after the end", fault.name, d)
			}
			want(t, fault.name+": source after the end", allowN(t, lim, "new", 1).Source, hybrid.SourceRedis)
			events.tellOutage(t, fault.name, fault.class, opened, lim)
		})
	}
}

// tellOutage fails the test unless the events are those of one outage.
func (j *journal) tellOutage(t *testing.T, name, class string, opened time.Time, lim *hybrid.Limiter) {
	t.Helper()
	var (
		degraded  []hybrid.Degraded
		recovered []hybrid.Recovered
		states    = "closed"
		last      time.Time
	)
	for i, e := range j.all() {
		if e.When().Before(last) {
			t.Errorf("%s: event %d is from before the one that came first", name, i)
		}
		last = e.When()
		switch e := e.(type) {
		case hybrid.BreakerChanged:
			if states[len(states)-len(e.From):] != e.From {
				t.Errorf("%s: breaker went %s and then from %s", name, states, e.From)
			}
			states += " " + e.To
			want(t, name+": the breaker's cause is told when it opens", e.Err != nil, e.To == "open")
		case hybrid.Degraded:
			degraded = append(degraded, e)
			want(t, name+": states before Degraded", states, "closed open")
		case hybrid.Recovered:
			recovered = append(recovered, e)
			want(t, name+": state before Recovered", states[len(states)-16:], "half-open closed")
		}
	}
	if len(degraded) != 1 || len(recovered) != 1 {
		t.Fatalf("%s: %d times degraded, %d times recovered: %v", name, len(degraded), len(recovered), j.all())
	}
	d, r := degraded[0], recovered[0]
	want(t, name+": class", d.Class, class)
	want(t, name+": an error is told", d.Err != nil, true)
	want(t, name+": instances", d.Instances, 4)
	want(t, name+": instances assumed", d.InstancesAssumed, false)
	want(t, name+": begin", d.At, opened)
	want(t, name+": duration", r.Duration, r.At.Sub(d.At))
	s := lim.Stats()
	want(t, name+": duration in Stats", s.DegradedFor, r.Duration)
	// Those of before the breaker opened are not part of it, but for the last.
	before := s.Allowed[hybrid.SourceDegraded] - r.Allowed
	if before > 5 {
		t.Errorf("%s: Recovered tells of %d admitted, Stats of %d", name, r.Allowed, s.Allowed[hybrid.SourceDegraded])
	}
	want(t, name+": refused meanwhile", r.Refused, s.Refused[hybrid.SourceDegraded])
}

func TestCallersInAFrozenOutageWaitForTheTimeOutOnly(t *testing.T) {
	for _, timeout := range []time.Duration{time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond, 200 * time.Millisecond} {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			// The options of the client allow far longer waits.
			lim := startOn(t, r.Client(), hybrid.PerSecond(1000), hybrid.WithRemoteTimeout(timeout))
			warm(t, lim)
			r.Freeze()
			var callers sync.WaitGroup
			for i := range 200 {
				callers.Go(func() {
					time.Sleep(time.Duration(i) * timeout / 50)
					open := lim.Stats().Breaker == "open"
					d := took(func() { allowN(t, lim, fmt.Sprint(i%20), 1) })
					if d > timeout || open && d > 0 {
						t.Errorf("a caller waited %v, breaker open: %v", d, open)
					}
				})
			}
			callers.Wait()
			want(t, "degraded", lim.Stats().Degraded, true)
		})
	}
}

func TestOneSlowAnswerIsNoOutage(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(1000))
		warm(t, lim)
		for i := range 50 {
			r.FailNext(i%3, "LOADING Redis is loading the dataset in memory")
			for k := range 7 {
				allowN(t, lim, fmt.Sprint(i, " ", k), 1)
			}
		}
		want(t, "breaker", lim.Stats().Breaker, "closed")
	})
}

// TestFlappingAddsNothing cuts Redis off every half second. The limit is used
// once by Redis and once by the share, whose burst comes once and not each time.
func TestFlappingAddsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		const instances = 4
		limit := hybrid.PerSecond(1).WithBurst(400)
		var lims []*hybrid.Limiter
		for range instances {
			lims = append(lims, start(t, r, limit, hybrid.WithExpectedInstances(instances)))
		}
		begun := time.Now()
		admitted := 0
		for _, lim := range lims {
			admitted += drain(t, lim, "k")
		}
		for i := range 40 { // 20 times gone and back
			if i%2 == 1 {
				r.FailWith("LOADING Redis is loading the dataset in memory")
			} else {
				r.Heal()
			}
			for range 50 {
				for _, lim := range lims {
					if allow(t, lim).Allowed {
						admitted++
					}
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
		gained := int(time.Since(begun).Seconds())
		// Each pass of a token counts once at the root and once in the shares.
		if most := 400 + 2*gained + instances; admitted < 400 || admitted > most {
			t.Errorf("%d admitted, want from 400 to %d", admitted, most)
		}
	})
}

func TestDeadRepliesNeverRunTwice(t *testing.T) {
	seeded(t, runs(2, 20), func(t *testing.T, r *redistest.Mini, rnd *rand.Rand) {
		lim := startOn(t, r.Client(), hybrid.PerHour(100)) // retries are on by default
		warm(t, lim)
		before := r.Counts()
		for i := range 20 {
			r.DropReplies(1)
			allowN(t, lim, fmt.Sprint(i), 1+rnd.IntN(5))
			allowN(t, lim, "fine", 1)
			allowN(t, lim, "fine too", 1)
		}
		made := uint64(0)
		for _, n := range lim.Stats().RedisCalls {
			made += n
		}
		if c := r.Counts().Sub(before); c.EvalSHA > int(made) || c.Runs > c.EvalSHA || c.Eval > 0 {
			t.Errorf("of %d calls the server saw %+v", made, c)
		}
		for i := range 20 {
			if left := allowN(t, lim, fmt.Sprint(i), 0).Remaining; left < 95 {
				t.Errorf("%d left of 100 after one request for at most 5", left)
			}
		}
	})
}
