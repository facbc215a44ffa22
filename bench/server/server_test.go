package server

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func start(t *testing.T) *Server {
	t.Helper()
	s, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func client(t *testing.T, addr string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestServerComesBackEmptyOnItsPort(t *testing.T) {
	s := start(t)
	ctx := t.Context()
	if err := client(t, s.Addr).Set(ctx, "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	if conn, err := net.Dial("tcp", s.Addr); err == nil {
		_ = conn.Close()
		t.Error("a killed server accepts connections")
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := client(t, s.Addr).Get(ctx, "k").Err(); err != redis.Nil {
		t.Errorf("after a restart the key gives %v, want no such key", err)
	}
}

func TestFrozenServerAnswersAfterThaw(t *testing.T) {
	s := start(t)
	c := client(t, s.Addr)
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.Freeze(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	impatient := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	defer func() { _ = impatient.Close() }()
	if err := impatient.Ping(ctx).Err(); err == nil {
		t.Error("a frozen server answers")
	}
	if err := s.Thaw(); err != nil {
		t.Fatal(err)
	}
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Errorf("a thawed server: %v", err)
	}
}

// What clients make a server do is counted, and what this program asks is not.
func TestUsageOfAServer(t *testing.T) {
	s := start(t)
	c := client(t, s.Addr)
	before, err := s.Usage()
	if err != nil {
		t.Fatal(err)
	}
	used, _, err := s.Memory()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Set(t.Context(), "a", strings.Repeat("x", 100_000), 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := c.Eval(t.Context(), `redis.call('GET', KEYS[1]) return redis.call('GET', KEYS[1])`, []string{"a"}).Err(); err != nil {
		t.Fatal(err)
	}
	after, err := s.Usage()
	if err != nil {
		t.Fatal(err)
	}
	if got := after.Sub(before); got.Commands != 4 || got.Scripts != 1 || got.ScriptTime <= 0 || got.CPU < 0 || after.CPU <= 0 {
		t.Errorf("a SET and a script of two commands count as %+v", got)
	}
	more, keys, err := s.Memory()
	if err != nil {
		t.Fatal(err)
	}
	if more < used+100_000 || keys != 1 {
		t.Errorf("%d bytes more for 100,000 bytes in %d keys", more-used, keys)
	}
	if n, err := s.KeyMemory(); err != nil || n < 100_000 || n > 200_000 {
		t.Errorf("the key takes %d bytes, %v", n, err)
	}
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	if _, keys, err := s.Memory(); err != nil || keys != 0 {
		t.Errorf("%d keys after a flush, %v", keys, err)
	}
}

func TestUsageReadsCommandstats(t *testing.T) {
	text := "# Commandstats\r\n" +
		"cmdstat_get:calls=7,usec=30,usec_per_call=4.28,rejected_calls=0,failed_calls=0\r\n" +
		"cmdstat_evalsha:calls=5,usec=100,usec_per_call=20.00,rejected_calls=0,failed_calls=0\r\n" +
		"cmdstat_eval:calls=1,usec=40,usec_per_call=40.00,rejected_calls=0,failed_calls=0\r\n" +
		"cmdstat_client|setinfo:calls=2,usec=4,usec_per_call=2.00\r\n" +
		"cmdstat_info:calls=3,usec=9,usec_per_call=3.00\r\n"
	got, err := usage(parseInfo(text))
	if want := (Usage{Commands: 13, Scripts: 6, ScriptTime: 140 * time.Microsecond}); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if _, err := usage(map[string]string{"cmdstat_get": "calls=many"}); err == nil {
		t.Error("what is no number is taken for one")
	}
	cpu, err := processor(parseInfo("used_cpu_sys:1.250000\r\nused_cpu_user:2.500000\r\nused_cpu_user_children:9\r\n"))
	if want := 3750 * time.Millisecond; err != nil || cpu != want {
		t.Errorf("processor time %v, %v, want %v", cpu, err, want)
	}
	if _, err := processor(nil); err == nil {
		t.Error("no processor time is taken for some")
	}
}

// Each answer takes a round trip at least, and many are under way at once: were
// they not, a hundred would take a hundred times as long.
func TestFarServerAnswersLater(t *testing.T) {
	const roundTrip = 100 * time.Millisecond
	s := start(t)
	f, err := NewFar(s.Addr, roundTrip)
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(&redis.Options{Addr: f.Addr, MaxRetries: -1})
	defer func() { _ = c.Close() }()
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if err := c.Ping(t.Context()).Err(); err != nil || time.Since(begun) < roundTrip {
		t.Errorf("an answer after %v, %v", time.Since(begun), err)
	}
	auto, err := c.AutoPipeline()
	if err != nil {
		t.Fatal(err)
	}
	begun = time.Now()
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if err := auto.Ping(t.Context()).Err(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if took := time.Since(begun); took >= 100*roundTrip {
		t.Errorf("100 at once took %v", took)
	}
	if err := auto.Close(); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if err := c.Ping(t.Context()).Err(); err == nil {
		t.Error("a closed proxy answers")
	}
}
