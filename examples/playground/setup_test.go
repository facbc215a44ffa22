package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/internal/redistest"
)

// connected is a setup that ends with the test, and a client of it.
func connected(t *testing.T, kind string) (setup, redis.UniversalClient) {
	t.Helper()
	s, err := connect(kind)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	rdb := s.client(newWire())
	t.Cleanup(func() { closeQuietly(rdb) })
	return s, rdb
}

// eventually polls a command until it succeeds, or for 20 seconds.
func eventually(t *testing.T, what string, f func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		err := f(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func must(t *testing.T, s setup, a action) {
	t.Helper()
	if why := s.cannot(a); why != "" {
		t.Fatalf("%s: %s", a, why)
	}
	if _, err := s.do(a); err != nil {
		t.Fatalf("%s: %v", a, err)
	}
}

// Each kind of Redis does what its buttons say.
func TestSetupsBreakAndComeBack(t *testing.T) {
	theirs := redistest.Server(t)
	for _, kind := range []string{"auto", "mini", "server", "redis://" + theirs.Addr()} {
		t.Run(strings.ReplaceAll(kind, "/", "_"), func(t *testing.T) {
			s, rdb := connected(t, kind)
			set := func(ctx context.Context) error { return rdb.Set(ctx, "k", "v", 0).Err() }
			get := func(ctx context.Context) error { return rdb.Get(ctx, "k").Err() }
			eventually(t, "set", set)
			for _, a := range []action{freeze, kill} {
				must(t, s, a)
				if err := get(t.Context()); err == nil {
					t.Errorf("%s: still answers", a)
				}
				if a == freeze {
					must(t, s, thaw)
				} else {
					must(t, s, restart)
				}
				eventually(t, "after "+string(a), get)
			}
			if s.cannot(failOver) == "" {
				t.Error("there is no replica to fail over to")
			}
			if s.cannot(restartEmpty) != "" {
				return
			}
			lost, err := s.do(restartEmpty)
			if err != nil || !lost {
				t.Fatalf("restart without data: %v, %v", lost, err)
			}
			eventually(t, "the key is gone", func(ctx context.Context) error {
				err := get(ctx)
				if err == redis.Nil {
					return nil
				}
				t.Logf("get: %v", err)
				return context.DeadlineExceeded
			})
		})
	}
	if got, err := theirs.Client().Get(t.Context(), "k").Result(); err != nil || got != "v" {
		t.Errorf("the user's server holds %q, %v: it should be left alone", got, err)
	}
}

func TestSentinelsFailOver(t *testing.T) {
	s, rdb := connected(t, "sentinel")
	run := func(ctx context.Context) (string, error) {
		info, err := rdb.Info(ctx, "server").Result()
		_, id, _ := strings.Cut(info, "run_id:")
		return strings.SplitN(id, "\r", 2)[0], err
	}
	var first string
	eventually(t, "the first master", func(ctx context.Context) (err error) { first, err = run(ctx); return })
	if s.cannot(kill) == "" || s.cannot(restart) == "" {
		t.Error("the first master can be restarted, it is said")
	}
	must(t, s, failOver)
	eventually(t, "another master", func(ctx context.Context) error {
		id, err := run(ctx)
		if err == nil && id == first {
			err = context.DeadlineExceeded
		}
		return err
	})
}

func TestWrongRedisIsExplained(t *testing.T) {
	gone := redistest.Server(t)
	gone.Kill()
	for kind, want := range map[string]string{
		"valkey":                  "want auto, mini, server, sentinel, or a URL",
		"http://localhost":        "want auto, mini, server, sentinel, or a URL",
		"redis://" + gone.Addr():  "start one with redis-server",
		"redis://localhost/a/b/c": "want auto, mini",
	} {
		if _, err := connect(kind); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", kind, err, want)
		}
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := connect("server"); err == nil || !strings.Contains(err.Error(), "install it with") {
		t.Errorf("no redis-server: %v", err)
	}
	s, _ := connected(t, "auto")
	if !strings.Contains(s.where(), "miniredis") {
		t.Errorf("without redis-server auto is %s", s.where())
	}
}
