package hybrid_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// seen is the text form of a limit as another instance sees it: from what Redis
// stores, a rate in lowest terms.
func seen(l hybrid.Limit) hybrid.Limit {
	n, d := int64(l.Count()), int64(l.Period()/time.Second)
	for a := min(n, d); a > 1; a-- {
		if n%a == 0 && d%a == 0 {
			n, d = n/a, d/a
		}
	}
	return hybrid.Per(int(n), time.Duration(d)*time.Second).WithBurst(l.Burst())
}

// mismatches are the events of that kind; any other fails the test.
func (j *journal) mismatches(t *testing.T) []hybrid.LimitMismatch {
	t.Helper()
	var list []hybrid.LimitMismatch
	for _, e := range j.all() {
		m, ok := e.(hybrid.LimitMismatch)
		if !ok {
			t.Errorf("event %T: %+v", e, e)
		}
		list = append(list, m)
	}
	return list
}

// An instance of a fleet that disagrees.
type dissenter struct {
	*hybrid.Limiter
	limit   hybrid.Limit
	version int64
	events  *journal
}

func dissent(t *testing.T, r *redistest.Mini, limit hybrid.Limit, version int64, options ...hybrid.Option) *dissenter {
	t.Helper()
	d := &dissenter{limit: limit, version: version, events: new(journal)}
	d.Limiter = start(t, r, limit, append(options, named, hybrid.WithLimitVersion(version), hybrid.WithEvents(d.events.add))...)
	return d
}

func TestWinnerAppliesToAllWithinOneMessage(t *testing.T) {
	low, high := hybrid.PerMinute(10), hybrid.PerMinute(60).WithBurst(100)
	for _, c := range []struct {
		name    string
		limits  []hybrid.Limit
		version []int64
		winner  int
	}{
		{"a higher version, down", []hybrid.Limit{high, low}, []int64{1, 2}, 1},
		{"a higher version, up", []hybrid.Limit{low, high}, []int64{1, 2}, 1},
		{"the lower rate", []hybrid.Limit{high, hybrid.PerMinute(30).WithBurst(100)}, []int64{0, 0}, 1},
		{"the smaller burst", []hybrid.Limit{high, high.WithBurst(50)}, []int64{7, 7}, 1},
		{"three of them", []hybrid.Limit{low, high, hybrid.PerMinute(20)}, []int64{1, 3, 2}, 1},
		{"three, and two of the highest version", []hybrid.Limit{low, high, hybrid.PerMinute(50)}, []int64{1, 3, 3}, 2},
	} {
		for first := range c.limits {
			bubble(t, func(t *testing.T, r *redistest.Mini) {
				var all []*dissenter
				for i, limit := range c.limits {
					all = append(all, dissent(t, r, limit, c.version[i]))
				}
				winner := c.limits[c.winner]
				for i := range all { // each one asks once, in turns from the first on
					allow(t, all[(first+i)%len(all)].Limiter)
				}
				allow(t, all[c.winner].Limiter) // by now at the latest the winner is known
				for i, d := range all {
					shown := seen(winner)
					if i == c.winner {
						shown = winner
					}
					want(t, fmt.Sprintf("%s: limit of instance %d", c.name, i), allow(t, d.Limiter).Limit, shown)
					want(t, "a look at it", allowN(t, d.Limiter, "k", 0).Limit, shown)
					want(t, "what it was given", d.Limit(), c.limits[i])
					list := d.events.mismatches(t)
					if i == c.winner {
						want(t, c.name+": events of the winner", len(list), 0)
						continue
					}
					if len(list) == 0 {
						t.Fatalf("%s: no event of instance %d", c.name, i)
					}
					want(t, "ours", list[0].Ours, c.limits[i])
					want(t, "our version", list[0].OurVersion, c.version[i])
					want(t, "key", list[0].Key, "rl:{n:k}")
					if len(c.limits) == 2 {
						want(t, "theirs", list[0].Theirs, seen(winner))
						want(t, "their version", list[0].TheirVersion, c.version[c.winner])
						want(t, "events", len(list), 1)
					}
				}
				// One bucket: what is left of it is the same for all.
				left := allowN(t, all[0].Limiter, "k", 0).Remaining
				for _, d := range all {
					want(t, c.name+": left", allowN(t, d.Limiter, "k", 0).Remaining, left)
				}
			})
		}
	}
}

func TestSameLimitOfAnotherVersionIsNoMismatch(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		limit := hybrid.PerMinute(10)
		a, b := dissent(t, r, limit, 1), dissent(t, r, limit, 2)
		for range 5 {
			want(t, "limit", allow(t, a.Limiter).Limit, limit)
			want(t, "limit", allow(t, b.Limiter).Limit, limit)
		}
		want(t, "left", allowN(t, a.Limiter, "k", 0).Remaining, 0)
		want(t, "events", len(a.events.mismatches(t))+len(b.events.mismatches(t)), 0)
	})
}

func TestMismatchIsToldOnceAMinute(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		old := dissent(t, r, hybrid.PerSecond(100), 1)
		current := dissent(t, r, hybrid.PerSecond(200), 2)
		begun := time.Now()
		for i := 0; time.Since(begun) < 150*time.Second; i++ {
			for _, key := range []string{"k", "another"} {
				allowN(t, current.Limiter, key, 1)
				allowN(t, old.Limiter, key, 1)
			}
			time.Sleep(100 * time.Millisecond)
		}
		list := old.events.mismatches(t)
		want(t, "events", len(list), 3)
		for i, m := range list {
			want(t, "when", m.At.Sub(begun).Round(time.Second), time.Duration(i)*time.Minute)
		}
		want(t, "events of the winner", len(current.events.mismatches(t)), 0)
	})
}

// A version that is rolled back: when nobody asks for the newer limit any more, the
// older one takes its place one lease later, also for requests that the newer one
// could never admit.
func TestRollbackOfAVersionTakesOneLease(t *testing.T) {
	for _, n := range []int{1, 8} {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			horizon := hybrid.WithLeaseHorizon(5 * time.Second) // leases of 25 s
			older := dissent(t, r, hybrid.PerHour(10), 1, horizon)
			newer := dissent(t, r, hybrid.PerHour(5), 2, horizon)
			allow(t, newer.Limiter)
			want(t, "limit of the newer", allow(t, older.Limiter).Limit, hybrid.Per(1, 12*time.Minute).WithBurst(5))
			_ = newer.Close()
			asked := time.Now()
			time.Sleep(25*time.Second - time.Microsecond)
			want(t, "a moment early", allowN(t, older.Limiter, "k", 0).Limit, hybrid.Per(1, 12*time.Minute).WithBurst(5))
			time.Sleep(time.Until(asked.Add(25 * time.Second)))
			if err := older.Reset(t.Context(), "k"); err != nil {
				t.Fatal(err)
			}
			res := allowN(t, older.Limiter, "k", n)
			want(t, "a lease later", res.Allowed, true)
			want(t, "limit a lease later", res.Limit, hybrid.PerHour(10))
		})
	}
}

func TestRollbackIsNoticedByRequestsThatTheWinnerNeverAdmits(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		horizon := hybrid.WithLeaseHorizon(5 * time.Second)
		older := dissent(t, r, hybrid.PerHour(10), 1, horizon)
		newer := dissent(t, r, hybrid.PerHour(5), 2, horizon)
		allow(t, newer.Limiter)
		allow(t, older.Limiter)
		_ = newer.Close()
		begun := time.Now()
		for {
			if res, err := older.AllowN(t.Context(), "k", 8); err == nil && res.Limit == hybrid.PerHour(10) {
				break
			}
			if time.Since(begun) > 80*time.Second {
				t.Fatal("nobody notices that the newer limit is gone")
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
}

// A rolling deploy under load, both ways: no window admits more than the larger
// limit, and one lease after the last of the old instances is gone the new limit is
// kept to and used.
func TestRollingDeployUnderLoad(t *testing.T) {
	for _, c := range []struct{ from, to hybrid.Limit }{
		{hybrid.PerSecond(1000), hybrid.PerSecond(200)}, {hybrid.PerSecond(200), hybrid.PerSecond(1000)},
	} {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			const n = 4
			lims := make([]*hybrid.Limiter, n)
			for i := range lims {
				lims[i] = start(t, r, c.from, named)
			}
			got := new(record)
			begun := time.Now()
			var replaced time.Time
			for time.Since(begun) < 6*time.Second {
				for i, at := range []time.Duration{1000, 1300, 1600, 1900} {
					if elapsed := time.Since(begun); elapsed >= at*time.Millisecond && lims[i].Limit() == c.from {
						_ = lims[i].Close()
						lims[i] = start(t, r, c.to, named, hybrid.WithLimitVersion(1))
						replaced = time.Now()
					}
					for range 2 {
						if allow(t, lims[i]).Allowed {
							got.add(1)
						}
					}
				}
				time.Sleep(5 * time.Millisecond)
				settle()
			}
			got.inBound(t, 1000, 1000)
			after := got.since(replaced.Add(time.Second))
			after.inBound(t, perSecond(c.to), float64(c.to.Burst()))
			if rate := float64(after.total()) / 3; rate < 0.8*perSecond(c.to) {
				t.Errorf("%v admitted per second, want nearly %v", rate, c.to)
			}
		})
	}
}

func TestNewerStateFormatDegradesItsKeyAndIsTold(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		events := new(journal)
		lim := start(t, r, hybrid.PerHour(40), named, hybrid.WithExpectedInstances(4), hybrid.WithEvents(events.add))
		warm(t, lim)
		r.Miniredis().HSet("rl:{n:k}", "l", "2 a form that is not known yet")
		want(t, "the fair part of the limit", drain(t, lim, "k"), 10)
		want(t, "source", allow(t, lim).Source, hybrid.SourceDegraded)
		want(t, "a look", allowN(t, lim, "k", 0).Source, hybrid.SourceDegraded)
		want(t, "another key", allowN(t, lim, "fine", 1).Source, hybrid.SourceRedis)
		want(t, "breaker", lim.Stats().Breaker, "closed")
		list := events.all()
		if len(list) != 1 {
			t.Fatalf("%d events, want one: %+v", len(list), list)
		}
		m, _ := list[0].(hybrid.Misconfigured)
		want(t, "class", m.Class, "version")
		want(t, "key", m.Key, "rl:{n:k}")
		want(t, "what is stored stays", r.Miniredis().HGet("rl:{n:k}", "l"), "2 a form that is not known yet")
		r.Miniredis().Del("rl:{n:k}")
		time.Sleep(200 * time.Millisecond)
		want(t, "when it is gone", allow(t, lim).Source, hybrid.SourceRedis)
	})
}
