package e2e

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// aclOf gives the words of the ACL command that SECURITY.md recommends.
func aclOf(t *testing.T) []any {
	t.Helper()
	text, err := os.ReadFile("../../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "ACL SETUSER limiter")
	command, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("SECURITY.md has no ACL command")
	}
	words := []any{"ACL", "SETUSER", "limiter"}
	for _, word := range strings.Fields(command) {
		words = append(words, word)
	}
	return words
}

// TestTheCommandsOfTheACLSuffice: a user with the rights that SECURITY.md names, and
// no more, can do everything with every algorithm.
func TestTheCommandsOfTheACLSuffice(t *testing.T) {
	server := redistest.Server(t)
	if err := server.Client().Do(t.Context(), aclOf(t)...).Err(); err != nil {
		t.Fatal(err)
	}
	algorithms := []hybrid.Algorithm{hybrid.TokenBucket, hybrid.LeakyBucket, hybrid.FixedWindow, hybrid.SlidingLog, hybrid.RollingWindow}
	for _, algorithm := range algorithms {
		rdb := server.Client(func(o *redis.Options) { o.Username, o.Password = "limiter", "PASSWORD" })
		lim, err := hybrid.New(rdb, hybrid.Per(5, 200*time.Millisecond), hybrid.WithName(algorithm.String()), hybrid.WithAlgorithm(algorithm),
			hybrid.WithRemoteTimeout(200*time.Millisecond), hybrid.WithEvents(func(e hybrid.Event) {
				switch e := e.(type) {
				case hybrid.Misconfigured:
					t.Errorf("%v: %s: %v", algorithm, e.Class, e.Err)
				default:
				}
			}))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		for range 12 { // windows end meanwhile
			if _, err := lim.Wait(ctx, "k"); err != nil {
				t.Fatalf("%v: %v", algorithm, err)
			}
		}
		if _, err := lim.Peek(ctx, "k"); err != nil {
			t.Errorf("%v: peek: %v", algorithm, err)
		}
		if err := lim.Reset(ctx, "k"); err != nil {
			t.Errorf("%v: reset: %v", algorithm, err)
		}
		eventually(t, "the announcement", func() bool { return lim.Stats().InstancesLive == 1 })
		cancel()
		s := lim.Stats()
		if s.RedisCalls["forbidden"] > 0 || s.Breaker != "closed" {
			t.Errorf("%v: calls %v, breaker %s", algorithm, s.RedisCalls, s.Breaker)
		}
		if err := lim.Close(); err != nil {
			t.Errorf("%v: close: %v", algorithm, err)
		}
	}
}
