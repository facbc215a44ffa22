package remote_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/internal/redistest"
	"github.com/resilient-go/limiter/remote"
)

func TestGuardThatRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := redistest.Bubble(t)
		refuse := true
		c := newClient(t, r.Client(), timeout, func(cfg *remote.Config) {
			cfg.Guard = func(send func() error) error {
				if refuse {
					return errors.New("open")
				}
				return send()
			}
			cfg.Observe = func(string, time.Duration, remote.Class) {
				if refuse {
					t.Error("a call that was not sent is observed")
				}
			}
		})
		for range 3 {
			allAre(t, many(c, remote.MaxInFlight+200), remote.Refused, time.Now())
		}
		if n := r.Counts(); n.Dials != 0 {
			t.Errorf("%+v, want nothing sent", n)
		}
		synctest.Wait()
		refuse = false
		if o := call(c, one("key")); o.err != nil {
			t.Error(o.err)
		}
	})
}

// The guard learns what became of a pipeline, and that a reply is no answer; what
// concerns a single key counts for less.
func TestGuardLearnsTheWorst(t *testing.T) {
	key := remote.Key("test", "batch1")
	for _, c := range []struct {
		name string
		make func(r *redistest.Mini, rdb *redis.Client)
		want remote.Class
	}{
		{"all is well", func(*redistest.Mini, *redis.Client) {}, remote.None},
		{"a key that is no hash", func(r *redistest.Mini, _ *redis.Client) { _ = r.Miniredis().Set(key, "mine") }, remote.BadKey},
		{"a state of a newer format", func(r *redistest.Mini, _ *redis.Client) { r.Miniredis().HSet(key, "l", "9") }, remote.Version},
		{"one of several fails", func(r *redistest.Mini, _ *redis.Client) {
			_ = r.Miniredis().Set(key, "mine")
			r.FailNext(1, "LOADING Redis is loading the dataset in memory")
		}, remote.Unavailable},
		{"a reply that is no answer", func(_ *redistest.Mini, rdb *redis.Client) { rdb.AddHook(answer("OK")) }, remote.Protocol},
		{"time-out", func(r *redistest.Mini, _ *redis.Client) { r.Freeze() }, remote.Timeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := redistest.Bubble(t)
				rdb := r.Client(onePool)
				connect(t, r, rdb)
				var mu sync.Mutex
				var learned []remote.Class
				client := newClient(t, rdb, timeout, func(cfg *remote.Config) {
					cfg.Guard = func(send func() error) error {
						err := send()
						mu.Lock()
						defer mu.Unlock()
						learned = append(learned, remote.ClassOf(err))
						return err
					}
				})
				warm(t, client)
				r.Delay(time.Millisecond)
				blockers := many(client, remote.MaxInFlight)
				calls := []future{start(client, one("batch0")), start(client, one("batch1")), start(client, one("batch2"))}
				synctest.Wait() // the server has seen the first ones
				c.make(r, rdb)
				for _, f := range append(blockers, calls...) {
					f.wait()
				}
				synctest.Wait()
				mu.Lock()
				defer mu.Unlock()
				want := append(slices.Repeat([]remote.Class{remote.None}, 1+remote.MaxInFlight), c.want)
				slices.Sort(want)
				slices.Sort(learned)
				if !slices.Equal(learned, want) {
					t.Errorf("the guard learned %v, want %v", learned, want)
				}
			})
		})
	}
}

func TestObserveIsToldOfEachCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := redistest.Bubble(t)
		var mu sync.Mutex
		seen := map[string]int{}
		c := newClient(t, r.Client(), timeout, func(cfg *remote.Config) {
			cfg.Observe = func(op string, took time.Duration, class remote.Class) {
				mu.Lock()
				defer mu.Unlock()
				seen[fmt.Sprint(op, " ", class, " ", took)]++
			}
		})
		warm(t, c)
		_ = r.Miniredis().Set(remote.Key("test", "bad"), "mine")
		call(c, one("bad"))
		stale := one("key")
		stale.Want = 5 * remote.Unit
		call(c, stale)
		call(c, stale)
		done := make(chan struct{})
		_ = c.Peek(remote.Key("test", "key"), tenPerHour, func(remote.Level, error) { close(done) })
		<-done
		r.Freeze()
		_ = c.Probe(one("key"))
		want := map[string]int{
			"acquire none 0s": 2, "acquire badkey 0s": 1, "acquire stale 0s": 1, "peek none 0s": 1, "acquire timeout 50ms": 1,
		}
		if fmt.Sprint(seen) != fmt.Sprint(want) {
			t.Errorf("observed %v, want %v", seen, want)
		}
	})
}

// The probe is not asked whether it may pass, is bounded on its own, and finds a
// place while every ordinary call is stuck.
func TestProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := redistest.Bubble(t)
		guarded := false
		c := newClient(t, r.Client(), timeout, func(cfg *remote.Config) {
			cfg.Guard = func(send func() error) error {
				if guarded {
					t.Error("the guard was asked")
				}
				return send()
			}
		})
		warm(t, c)
		r.Freeze()
		begun := time.Now()
		allAre(t, many(c, remote.MaxInFlight), remote.Timeout, begun.Add(timeout))
		guarded = true
		probe := func() future {
			f := make(future, 1)
			go func() {
				err := c.Probe(one("probe"))
				f <- outcome{err: err, at: time.Now()}
			}()
			return f
		}
		var probes []future
		for range remote.MaxProbes {
			probes = append(probes, probe())
		}
		synctest.Wait()
		beyond := probe()
		allAre(t, []future{beyond}, remote.Saturated, begun.Add(timeout))
		allAre(t, probes, remote.Timeout, begun.Add(2*timeout))
		r.Thaw()
		time.Sleep(time.Second)
		for range 3 {
			if err := c.Probe(one("probe")); err != nil {
				t.Error(err)
			}
		}
		_ = r.Miniredis().Set(remote.Key("test", "bad"), "mine")
		if err := c.Probe(one("bad")); remote.ClassOf(err) != remote.BadKey {
			t.Errorf("%v, want class badkey", err)
		}
		r.FailWith("OOM command not allowed when used memory > 'maxmemory'.")
		if err := c.Probe(one("probe")); remote.ClassOf(err) != remote.Unavailable {
			t.Errorf("%v, want class unavailable", err)
		}
	})
}
