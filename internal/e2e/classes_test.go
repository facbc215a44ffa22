package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
	"github.com/resilient-go/limiter/remote"
)

// A troubled is a limiter on a real server that an administrator can break.
type troubled struct {
	t     *testing.T
	admin *redis.Client // a connection of its own, which no password or limit of clients hits
	lim   *hybrid.Limiter
	name  string

	mu     sync.Mutex // guards what follows
	events []hybrid.Event
}

// startTroubled starts a limiter as the user "app" of a server.
func startTroubled(t *testing.T, r *redistest.Redis, admin *redis.Client) *troubled {
	t.Helper()
	s := &troubled{t: t, admin: admin, name: strings.ReplaceAll(t.Name(), "/", " ")}
	s.do("ACL", "SETUSER", "app", "reset", "on", ">secret", "~*", "+@all")
	o := remote.Options(shardTimeout, r.DirectAddr()).Simple()
	o.Username, o.Password = "app", "secret"
	rdb := redis.NewClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	lim, err := hybrid.New(rdb, hybrid.PerHour(1000), quiet, hybrid.WithName(s.name), hybrid.WithRemoteTimeout(shardTimeout),
		hybrid.WithEvents(func(e hybrid.Event) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.events = append(s.events, e)
		}))
	if err != nil {
		t.Fatal(err)
	}
	s.lim = lim
	t.Cleanup(func() { _ = lim.Close() })
	for _, key := range []string{"first", "second"} {
		if got := s.ask(key); got != hybrid.SourceRedis {
			t.Fatalf("before the trouble %v decides", got)
		}
	}
	return s
}

// do runs a command of the administrator.
func (s *troubled) do(args ...any) any {
	s.t.Helper()
	v, err := s.admin.Do(context.Background(), args...).Result()
	if err != nil {
		s.t.Fatalf("%v: %v", args, err)
	}
	return v
}

// ask makes a request that must pass, and tells who decided.
func (s *troubled) ask(key string) hybrid.Source {
	s.t.Helper()
	res, err := s.lim.Allow(s.t.Context(), key)
	if err != nil || !res.Allowed {
		s.t.Fatalf("%+v, %v: nobody is near a limit", res, err)
	}
	return res.Source
}

// story tells the events that matter here, one word each.
func (s *troubled) story() (words []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		switch e := e.(type) {
		case hybrid.Misconfigured:
			words = append(words, "misconfigured:"+e.Class)
		case hybrid.Degraded:
			words = append(words, "degraded:"+e.Class)
		case hybrid.Recovered:
			words = append(words, "recovered")
		case hybrid.StateLost:
			words = append(words, "lost")
		default:
		}
	}
	return words
}

// hangUp ends the connections of the limiter.
func hangUp(s *troubled) { s.do("CLIENT", "KILL", "USER", "app") }

// troubles are ways in which a real server fails that was well a moment ago.
var troubles = []struct {
	name          string
	begin, end    func(s *troubled)
	class         []string // of Degraded; any of these
	misconfigured bool     // is told as well
}{
	{
		name:  "out of memory",
		begin: func(s *troubled) { s.do("CONFIG", "SET", "maxmemory", "1") },
		end:   func(s *troubled) { s.do("CONFIG", "SET", "maxmemory", "0") },
		class: []string{"unavailable"},
	},
	{
		name:  "clients are paused",
		begin: func(s *troubled) { s.do("CLIENT", "PAUSE", "60000", "WRITE") },
		end:   func(s *troubled) { s.do("CLIENT", "UNPAUSE") },
		class: []string{"timeout"},
	},
	{
		name:  "scripts are forbidden",
		begin: func(s *troubled) { s.do("ACL", "SETUSER", "app", "-evalsha", "-eval") },
		end:   func(s *troubled) { s.do("ACL", "SETUSER", "app", "+evalsha", "+eval") },
		class: []string{"forbidden"}, misconfigured: true,
	},
	{
		name:  "a command in the script is forbidden",
		begin: func(s *troubled) { s.do("ACL", "SETUSER", "app", "-hset") },
		end:   func(s *troubled) { s.do("ACL", "SETUSER", "app", "+hset") },
		class: []string{"forbidden"}, misconfigured: true,
	},
	{
		name:  "the password is changed",
		begin: func(s *troubled) { s.do("ACL", "SETUSER", "app", "resetpass", ">other"); hangUp(s) },
		end:   func(s *troubled) { s.do("ACL", "SETUSER", "app", "resetpass", ">secret") },
		class: []string{"forbidden"}, misconfigured: true,
	},
	{
		name:  "no place for clients", // Redis says so and hangs up: which of both is seen is a matter of luck
		begin: func(s *troubled) { s.do("CONFIG", "SET", "maxclients", "1"); hangUp(s) },
		end:   func(s *troubled) { s.do("CONFIG", "SET", "maxclients", "1000") },
		class: []string{"connection", "unavailable"},
	},
	{
		name:  "a read-only replica",
		begin: func(s *troubled) { s.do("REPLICAOF", "127.0.0.1", "1") },
		end:   func(s *troubled) { s.do("REPLICAOF", "NO", "ONE") },
		class: []string{"unavailable"},
	},
	{
		name: "a replica without its master",
		begin: func(s *troubled) {
			s.do("CONFIG", "SET", "replica-serve-stale-data", "no")
			s.do("REPLICAOF", "127.0.0.1", "1")
		},
		end: func(s *troubled) {
			s.do("REPLICAOF", "NO", "ONE")
			s.do("CONFIG", "SET", "replica-serve-stale-data", "yes")
		},
		class: []string{"unavailable"},
	},
	{
		name:  "too few replicas",
		begin: func(s *troubled) { s.do("CONFIG", "SET", "min-replicas-to-write", "1") },
		end:   func(s *troubled) { s.do("CONFIG", "SET", "min-replicas-to-write", "0") },
		class: []string{"unavailable"},
	},
}

// TestTroublesOfARealServer: each is told once, with its class; the outage policy
// decides and nobody gets an error; and when it is over Redis decides by itself.
func TestTroublesOfARealServer(t *testing.T) {
	r := redistest.Server(t)
	admin := redis.NewClient(&redis.Options{Addr: r.DirectAddr(), PoolSize: 1})
	t.Cleanup(func() { _ = admin.Close() })
	for _, c := range troubles {
		t.Run(c.name, func(t *testing.T) {
			s := startTroubled(t, r, admin)
			c.begin(s)
			ended := false
			end := func() {
				if !ended {
					ended = true
					c.end(s)
				}
			}
			t.Cleanup(end)
			eventually(t, "the outage is noticed", func() bool {
				s.ask("first")
				return s.lim.Stats().Degraded
			})
			for i := range 20 {
				if got := s.ask(fmt.Sprint("key", i)); got != hybrid.SourceDegraded {
					t.Errorf("%v decides in the outage", got)
				}
			}
			end()
			eventually(t, "the recovery", func() bool { return !s.lim.Stats().Degraded })
			if got := s.ask("new"); got != hybrid.SourceRedis {
				t.Errorf("%v decides afterwards", got)
			}
			eventually(t, "the recovery is told", func() bool { return slices.Contains(s.story(), "recovered") })
			var wanted [][]string
			for _, class := range c.class {
				w := []string{"degraded:" + class, "recovered"}
				if c.misconfigured {
					w = append([]string{"misconfigured:" + class}, w...)
				}
				wanted = append(wanted, w)
			}
			if got := s.story(); !slices.ContainsFunc(wanted, func(w []string) bool { return slices.Equal(w, got) }) {
				t.Errorf("events %q, want one of %q", got, wanted)
			}
		})
	}
}
