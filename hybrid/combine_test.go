package hybrid_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// part asks a limiter for n tokens of a key.
func part(lim *hybrid.Limiter, key string, n int) hybrid.Part {
	return hybrid.Part{Limiter: lim, Request: hybrid.Request{Key: key, N: n}}
}

func combine(t testing.TB, parts ...hybrid.Part) hybrid.Combined {
	t.Helper()
	c, err := hybrid.Combine(t.Context(), parts...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// left is what a key has, at Redis and on lease here.
func left(t testing.TB, lim *hybrid.Limiter, key string) int {
	t.Helper()
	return allowN(t, lim, key, 0).Remaining
}

func TestCombineIsAllOrNothing(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		users := start(t, r, hybrid.PerHour(10), hybrid.WithName("users"))
		addrs := start(t, r, hybrid.PerHour(8), hybrid.WithName("addresses"))
		routes := start(t, r, hybrid.PerHour(3), hybrid.WithName("routes"))
		parts := []hybrid.Part{part(users, "u1", 1), part(addrs, "a1", 1), part(routes, "r1", 1)}
		for i := range 3 {
			c := combine(t, parts...)
			want(t, "allowed", c.Allowed, true)
			want(t, "error", c.Err(), nil)
			want(t, "results", len(c.Results), 3)
			want(t, "the tightest", c.Result.Limit, hybrid.PerHour(3))
			want(t, "left of it", c.Result.Remaining, 2-i)
		}
		for range 50 {
			c := combine(t, parts...)
			want(t, "allowed", c.Allowed, false)
			want(t, "refused by", c.Refused, "routes")
			want(t, "key", c.Key, "r1")
			want(t, "retry after", c.Result.RetryAfter, 20*time.Minute)
			var limited *hybrid.LimitedError
			want(t, "a LimitedError", errors.As(c.Err(), &limited) && errors.Is(c.Err(), hybrid.ErrLimited), true)
			want(t, "its part", limited.Part, "routes")
			want(t, "its key", limited.Key, "r1")
		}
		want(t, "left of the user", left(t, users, "u1"), 7)
		want(t, "left of the address", left(t, addrs, "a1"), 5)
		want(t, "lost", users.Stats().TokensLost+addrs.Stats().TokensLost+routes.Stats().TokensLost, 0)
		time.Sleep(3 * time.Second) // what lies idle on lease is returned
		want(t, "all of it can be had at once", allowN(t, users, "u1", 7).Allowed, true)
		want(t, "and of the address", allowN(t, addrs, "a1", 5).Allowed, true)
	})
}

// A refusal that is not remembered comes after the others were taken, which are put
// back then, each time anew.
func TestCombinePutsBackWhatWasTaken(t *testing.T) {
	for _, a := range []hybrid.Algorithm{hybrid.TokenBucket, hybrid.FixedWindow} {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			users := start(t, r, hybrid.PerHour(10), hybrid.WithName("users"), hybrid.WithAlgorithm(a))
			routes := start(t, r, hybrid.PerHour(3), hybrid.WithName("routes"), hybrid.WithAlgorithm(a))
			parts := []hybrid.Part{part(users, "u1", 3), part(routes, "r1", 2)}
			parts[1].Name = "the route"
			want(t, "first", combine(t, parts...).Allowed, true)
			for range 200 {
				c := combine(t, parts...)
				want(t, "allowed", c.Allowed, false)
				want(t, "refused by", c.Refused, "the route")
				time.Sleep(time.Millisecond)
				settle()
			}
			want(t, "left of the user", left(t, users, "u1"), 7)
			want(t, "lost", users.Stats().TokensLost, 0)
			time.Sleep(2 * time.Second) // leases end
			want(t, "all of it can be had at once", allowN(t, users, "u1", 7).Allowed, true)
			want(t, "and no more", allowN(t, users, "u1", 1).Allowed, false)
		})
	}
}

func TestCombineTheSameKeyTwice(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerHour(5))
		for i := range 4 {
			want(t, "allowed", combine(t, part(lim, "k", 1), part(lim, "k", 1)).Allowed, i < 2)
		}
		want(t, "left", drain(t, lim, "k"), 1)
	})
}

func TestCombineFromLeases(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		hot := start(t, r, hybrid.PerSecond(1_000_000), hybrid.WithName("hot"))
		cold := start(t, r, hybrid.PerHour(5), hybrid.WithName("cold"))
		heat(t, hot)
		calls := r.Counts().Runs
		for range 5 {
			want(t, "allowed", combine(t, part(hot, "k", 2), part(cold, "c", 1)).Allowed, true)
		}
		if n := r.Counts().Runs - calls; n > 6 { // the cold key, and a renewal
			t.Errorf("%d calls for five decisions", n)
		}
		before := allowN(t, hot, "k", 0).Remaining
		for range 100 {
			want(t, "refused by", combine(t, part(hot, "k", 2), part(cold, "c", 2)).Refused, "cold")
		}
		want(t, "left of the hot key", allowN(t, hot, "k", 0).Remaining, before)
	})
}

func TestCombineWithoutALeaseCountsWhatIsLost(t *testing.T) {
	for _, a := range []hybrid.Algorithm{hybrid.LeakyBucket, hybrid.SlidingLog, hybrid.RollingWindow} {
		bubble(t, func(t *testing.T, r *redistest.Mini) {
			users := start(t, r, hybrid.PerHour(10), hybrid.WithName("users"), hybrid.WithAlgorithm(a))
			routes := start(t, r, hybrid.PerHour(3), hybrid.WithName("routes"))
			want(t, "first", combine(t, part(users, "u", 3), part(routes, "r", 2)).Allowed, true)
			want(t, "refused by", combine(t, part(users, "u", 3), part(routes, "r", 2)).Refused, "routes")
			want(t, "lost", users.Stats().TokensLost, 3)
			want(t, "left", left(t, users, "u"), 4)
		})
	}
}

func TestCombineInAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		well := redistest.Bubble(t)
		users := start(t, r, hybrid.PerHour(20), hybrid.WithName("users"), hybrid.WithExpectedInstances(2))
		routes := start(t, well, hybrid.PerHour(6), hybrid.WithName("routes"))
		r.Kill()
		trip(t, users)
		lost := users.Stats().TokensLost
		for range 3 {
			c := combine(t, part(users, "u", 2), part(routes, "r", 2))
			want(t, "allowed", c.Allowed, true)
			want(t, "source", c.Results[0].Source, hybrid.SourceDegraded)
			want(t, "the other goes on", c.Results[1].Source == hybrid.SourceDegraded, false)
		}
		for range 20 {
			want(t, "refused by", combine(t, part(users, "u", 2), part(routes, "r", 2)).Refused, "routes")
		}
		want(t, "left of its part", drain(t, users, "u"), 4)
		want(t, "lost", users.Stats().TokensLost, lost)
		for range 6 {
			want(t, "refused by", combine(t, part(routes, "s", 1), part(users, "u", 1)).Refused, "users")
			want(t, "left of the other", left(t, routes, "s"), 6)
		}
	})
}

// A caller who gives up while a later part is being asked has spent nothing.
func TestCombineThatIsGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		hung := redistest.Bubble(t)
		users := start(t, r, hybrid.PerHour(10), hybrid.WithName("users"))
		routes := start(t, hung, hybrid.PerHour(3), hybrid.WithName("routes"))
		hung.Freeze()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		_, err := hybrid.Combine(ctx, part(users, "u", 4), part(routes, "r", 1))
		want(t, "error", err, context.DeadlineExceeded)
		want(t, "left", left(t, users, "u"), 10)
		want(t, "lost", users.Stats().TokensLost, 0)
		_ = routes.Close()
		_, err = hybrid.Combine(t.Context(), part(users, "u", 4), part(routes, "r", 1))
		want(t, "error", err, hybrid.ErrClosed)
		want(t, "all can be had", allowN(t, users, "u", 10).Allowed, true)
	})
}

func TestCombineRefusesWrongParts(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerHour(10))
		ok := part(lim, "k", 1)
		low := part(lim, "k", 9)
		low.Request.Priority = hybrid.PriorityLow
		for what, c := range map[string]struct {
			parts []hybrid.Part
			err   error
		}{
			"no key":     {[]hybrid.Part{ok, part(lim, "", 1)}, hybrid.ErrInvalidKey},
			"no tokens":  {[]hybrid.Part{ok, part(lim, "k", 0)}, hybrid.ErrInvalidN},
			"fewer":      {[]hybrid.Part{ok, part(lim, "k", -1)}, hybrid.ErrInvalidN},
			"too many":   {[]hybrid.Part{ok, part(lim, "k", 11)}, hybrid.ErrExceedsBurst},
			"low":        {[]hybrid.Part{ok, low}, hybrid.ErrExceedsBurst},
			"no limiter": {[]hybrid.Part{ok, {}}, nil},
			"nothing":    {nil, nil},
		} {
			_, err := hybrid.Combine(t.Context(), c.parts...)
			var config *hybrid.ConfigError
			if c.err != nil && !errors.Is(err, c.err) || c.err == nil && !errors.As(err, &config) {
				t.Errorf("%s: %v, want %v", what, err, c.err)
			}
		}
		want(t, "calls", r.Counts().Runs, 0)
		want(t, "left", drain(t, lim, "k"), 10)
	})
}

// A part in shadow mode refuses nobody, and what it would have refused is counted.
func TestCombineWithAShadow(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		users := start(t, r, hybrid.PerHour(4), hybrid.WithName("users"))
		shadow := start(t, r, hybrid.PerHour(1), hybrid.WithName("shadow"), hybrid.WithShadow())
		for i := range 5 {
			c := combine(t, part(shadow, "s", 1), part(users, "u", 1))
			want(t, "allowed", c.Allowed, i < 4)
			if i < 4 {
				want(t, "in the shadow", c.Results[0].Shadow, i > 0)
			}
		}
		want(t, "shadowed", shadow.Stats().Shadowed, 4)
		want(t, "large", combine(t, part(shadow, "s", 2), part(users, "v", 1)).Allowed, true)
		want(t, "shadowed", shadow.Stats().Shadowed, 5)
	})
}

func TestCombineWait(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		users := start(t, r, hybrid.PerMinute(2), hybrid.WithName("users"))
		routes := start(t, r, hybrid.PerMinute(6), hybrid.WithName("routes"))
		parts := []hybrid.Part{part(users, "u", 2), part(routes, "r", 2)}
		begun := time.Now()
		for range 3 {
			if c, err := hybrid.CombineWait(t.Context(), parts...); err != nil || !c.Allowed {
				t.Fatalf("%+v, %v", c, err)
			}
		}
		want(t, "at the pace of the slower", time.Since(begun).Round(100*time.Millisecond), 2*time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		begun = time.Now()
		c, err := hybrid.CombineWait(ctx, parts...)
		want(t, "error", errors.Is(err, hybrid.ErrWouldExceedDeadline), true)
		want(t, "at once", time.Since(begun), 0)
		want(t, "refused by", c.Refused, "users")
	})
}

// Whatever is combined, by several instances, in whatever order: what was admitted
// and what is left are the burst, to the token, but for what is counted as lost.
func TestCombineConservesTokens(t *testing.T) {
	seeded(t, runs(15, 1000), func(t *testing.T, r *redistest.Mini, rnd *rand.Rand) {
		bursts := []int{1 + rnd.IntN(10), 1 + rnd.IntN(100), 1 + rnd.IntN(1000)}
		const instances = 3
		lims := make([][]*hybrid.Limiter, len(bursts))
		for i, burst := range bursts {
			for range instances {
				lims[i] = append(lims[i], start(t, r, hybrid.PerHour(burst).WithBurst(burst), hybrid.WithName(fmt.Sprint("limit", i))))
			}
		}
		r.Delay(time.Duration(rnd.IntN(3)) * time.Millisecond)
		admitted := make([]int, len(bursts))
		refused := 0
		steps := 50 + rnd.IntN(200)
		for range steps {
			instance := rnd.IntN(instances)
			parts, n := []hybrid.Part{}, make([]int, len(bursts))
			for range 1 + rnd.IntN(4) {
				i := rnd.IntN(len(bursts))
				p := part(lims[i][instance], "k", 1+rnd.IntN(min(bursts[i], 5)))
				n[i] += p.Request.N
				parts = append(parts, p)
			}
			if c := combine(t, parts...); c.Allowed {
				for i := range n {
					admitted[i] += n[i]
				}
			} else {
				refused++
			}
			time.Sleep(time.Duration(rnd.IntN(20)) * time.Millisecond)
		}
		r.Heal()
		time.Sleep(26 * time.Second) // all leases end
		for i, burst := range bursts {
			rest, lost := 0, 0
			for _, lim := range lims[i] {
				rest += drain(t, lim, "k")
				lost += int(lim.Stats().TokensLost)
			}
			gained := float64(burst)/3600*float64(26+steps/50) + 1
			if sum := admitted[i] + rest + lost; sum < burst || float64(sum) > float64(burst)+gained {
				t.Errorf("%d were admitted, %d are left and %d lost of %d; %d refusals", admitted[i], rest, lost, burst, refused)
			}
		}
	})
}

// What was gained in place of what was taken is not given twice: here the bucket is
// full again, and emptied, before the other part refuses.
func TestCombinePutsBackNothingThatWouldHaveOverflowed(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		hung := redistest.Bubble(t)
		limit := hybrid.PerSecond(1000)
		users := start(t, r, limit, hybrid.WithName("users"))
		routes := start(t, hung, limit, hybrid.WithName("routes"), hybrid.WithOutagePolicy(hybrid.FailClosed))
		r.Kill()
		trip(t, users)
		hung.Freeze()
		var rec record
		ended := make(chan struct{})
		lost := users.Stats().TokensLost
		go func() {
			defer close(ended)
			want(t, "refused by", combine(t, part(users, "u", 20), part(routes, "r", 1)).Refused, "routes")
		}()
		time.Sleep(45 * time.Millisecond)
		for range drain(t, users, "u") {
			rec.add(1)
		}
		<-ended
		for range drain(t, users, "u") {
			rec.add(1)
		}
		rec.inBound(t, 1000, 1000)
		want(t, "lost", users.Stats().TokensLost-lost, 20)
	})
}

func TestCombineOnACluster(t *testing.T) {
	cluster := redistest.Cluster(t)
	rdb := cluster.Client()
	users := startOn(t, rdb, hybrid.PerHour(10), hybrid.WithName("users"), hybrid.WithRemoteTimeout(200*time.Millisecond), hybrid.WithOutagePolicy(hybrid.FailClosed))
	routes := startOn(t, rdb, hybrid.PerHour(3), hybrid.WithName("routes"), hybrid.WithRemoteTimeout(200*time.Millisecond), hybrid.WithOutagePolicy(hybrid.FailClosed))
	for i := range 8 { // keys on different shards
		// A machine that stands still for the time-out is an outage, and what the
		// message took is lost.
		for try := 0; ; try++ {
			user, route := fmt.Sprintf("user %d %d", i, try), fmt.Sprintf("route %d %d", i, try)
			first := combine(t, part(users, user, 4), part(routes, route, 2))
			second := combine(t, part(users, user, 4), part(routes, route, 2))
			rest := left(t, users, user)
			degraded := users.Stats().Allowed[hybrid.SourceDegraded] + users.Stats().Refused[hybrid.SourceDegraded] +
				routes.Stats().Refused[hybrid.SourceDegraded]
			if first.Allowed && second.Refused == "routes" && rest == 6 {
				break
			}
			if degraded == 0 || try == 20 {
				t.Fatalf("%+v, %+v, %d left", first, second, rest)
			}
		}
	}
}
