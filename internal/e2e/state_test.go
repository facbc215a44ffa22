package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
	"github.com/resilient-go/limiter/remote"
)

// adminOf is a client with one connection.
func adminOf(t *testing.T, r *redistest.Redis) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: r.DirectAddr(), PoolSize: 1, ReadTimeout: patience, MaxRetries: -1})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Somebody else's value under the name of a key: that key is degraded, and told of;
// the others are not.
func TestAKeyThatHoldsSomethingElse(t *testing.T) {
	r := redistest.Server(t)
	s := startTroubled(t, r, adminOf(t, r))
	name := remote.Key(s.name, "first")
	s.do("SET", name, "mine")
	eventually(t, "the key is degraded", func() bool { return s.ask("first") == hybrid.SourceDegraded })
	for i := range 20 {
		if got := s.ask(fmt.Sprint("key", i)); got != hybrid.SourceRedis {
			t.Errorf("%v decides about another key", got)
		}
	}
	eventually(t, "it is told", func() bool { return len(s.story()) > 0 })
	s.do("DEL", name)
	eventually(t, "the key is back", func() bool { return s.ask("first") != hybrid.SourceDegraded })
	// The bucket was overwritten: that may be told as well.
	if got := s.story(); got[0] != "misconfigured:badkey" || len(got) > 2 || len(got) == 2 && got[1] != "lost" {
		t.Errorf("events %q, want that the key holds something else", got)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		if m, ok := e.(hybrid.Misconfigured); ok && m.Key != name {
			t.Errorf("it is told of %q, want %q", m.Key, name)
		}
	}
}

// The server evicts a bucket that was used up in part: it goes on where it was.
func TestAnEvictedBucketGoesOnWhereItWas(t *testing.T) {
	r := redistest.Server(t)
	s := startTroubled(t, r, adminOf(t, r))
	res, err := s.lim.AllowN(t.Context(), "evicted", 700)
	if err != nil || !res.Allowed || res.Source != hybrid.SourceRedis {
		t.Fatalf("%+v, %v", res, err)
	}
	name := remote.Key(s.name, "evicted")
	s.do("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	_, memory, _ := strings.Cut(s.do("INFO", "memory").(string), "used_memory:")
	memory, _, _ = strings.Cut(memory, "\r")
	used, err := strconv.Atoi(memory)
	if err != nil {
		t.Fatal(err)
	}
	s.do("CONFIG", "SET", "maxmemory", used+1<<20)
	filler := strings.Repeat("x", 10_000)
	for i := 0; s.do("EXISTS", name).(int64) == 1; i++ { // EXISTS does not count as a use
		if i == 10_000 {
			t.Fatal("the bucket is not evicted")
		}
		s.do("SET", fmt.Sprint("filler", i), filler)
	}
	s.do("CONFIG", "SET", "maxmemory", "0")
	passed := 0
	for {
		res, err := s.lim.Allow(t.Context(), "evicted")
		if err != nil || res.Source == hybrid.SourceDegraded {
			t.Fatalf("%+v, %v", res, err)
		}
		if !res.Allowed {
			break
		}
		passed++
	}
	if passed < 250 || passed > 330 { // a thousand per hour: one each 3.6 s
		t.Errorf("%d more passed, want the 300 that were left", passed)
	}
	eventually(t, "it is told", func() bool { return slices.Equal(s.story(), []string{"lost"}) })
}

// A server that comes back with a lot of data answers, but not us, until it has read all.
func TestAServerThatLoadsABigDataSet(t *testing.T) {
	r := redistest.Server(t, "enable-debug-command yes", "loading-process-events-interval-bytes 1024")
	s := startTroubled(t, r, adminOf(t, r))
	s.do("DEBUG", "POPULATE", normally(10_000, 100_000))
	s.do("CONFIG", "SET", "key-load-delay", "50") // microseconds
	loaded := make(chan error)
	go func() { loaded <- adminOf(t, r).Do(t.Context(), "DEBUG", "RELOAD").Err() }()
	eventually(t, "the outage is noticed", func() bool {
		s.ask("first")
		return s.lim.Stats().Degraded
	})
	if err := <-loaded; err != nil {
		t.Fatal(err)
	}
	eventually(t, "the recovery", func() bool { return !s.lim.Stats().Degraded })
	if got := s.ask("new"); got != hybrid.SourceRedis {
		t.Errorf("%v decides afterwards", got)
	}
	eventually(t, "it is told", func() bool { return slices.Contains(s.story(), "recovered") })
	if got := s.story(); !slices.Equal(got, []string{"degraded:unavailable", "recovered"}) {
		t.Errorf("events %q, want one outage of class unavailable", got)
	}
	if n := s.lim.Stats().RedisCalls["unavailable"]; n < 5 {
		t.Errorf("%d calls were answered with LOADING, want 5 at least", n)
	}
}
