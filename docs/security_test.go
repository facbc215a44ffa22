package docs_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

func TestMain(m *testing.M) {
	redistest.SilenceClientLog()
	m.Run()
}

// aclRule is the line of the document, word by word.
func aclRule(t *testing.T) []string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^ACL SETUSER .*$`).FindString(read(t, "security.md"))
	if m == "" {
		t.Fatal("security.md has no line for the ACL")
	}
	return strings.Fields(m)
}

// TestLimiterNeedsWhatTheACLGives runs everything under the user of the document, and
// compares the list with what the scripts call.
func TestLimiterNeedsWhatTheACLGives(t *testing.T) {
	rule := aclRule(t)
	server := redistest.Server(t)
	if reply, err := server.Do(rule...); err != nil {
		t.Fatal(reply, err)
	}
	user, password := credentials(rule)
	rdb := server.Client(func(o *redis.Options) {
		dialer := o.Dialer
		*o = *hybrid.RedisOptionsFor(5*time.Second, o.Addr).Simple()
		o.Username, o.Password, o.Dialer = user, password, dialer
	})
	useAlgorithms(t, rdb, server.Do)

	want := []string{"evalsha", "eval"}
	files, err := filepath.Glob("../lua/*.lua")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		for _, m := range regexp.MustCompile(`redis\.call\('(\w+)'`).FindAllStringSubmatch(read(t, f), -1) {
			want = append(want, strings.ToLower(m[1]))
		}
	}
	var got []string
	for _, word := range rule {
		if c, ok := strings.CutPrefix(word, "+"); ok {
			got = append(got, c)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if want = slices.Compact(want); !slices.Equal(got, want) {
		t.Errorf("the document permits\n%v\nthe limiter uses\n%v", got, want)
	}
}

// TestClusterClientNeedsTwoCommandsMore does so on a cluster.
func TestClusterClientNeedsTwoCommandsMore(t *testing.T) {
	rule := aclRule(t)
	m := regexp.MustCompile("With Cluster the client needs `([^`]+)`").FindStringSubmatch(read(t, "security.md"))
	if m == nil {
		t.Fatal("security.md does not say what a cluster needs")
	}
	server := redistest.Cluster(t)
	if reply, err := server.Do(append(slices.Clone(rule), strings.Fields(m[1])...)...); err != nil {
		t.Fatal(reply, err)
	}
	user, password := credentials(rule)
	rdb := server.Client(func(o *redis.ClusterOptions) {
		addrs, dialer := o.Addrs, o.Dialer
		*o = *hybrid.RedisOptionsFor(5*time.Second, addrs...).Cluster()
		o.Username, o.Password, o.Dialer = user, password, dialer
	})
	useAlgorithms(t, rdb, server.Do)
}

// credentials are those that a rule sets.
func credentials(rule []string) (user, password string) {
	for i, word := range rule {
		if word == "SETUSER" {
			user = rule[i+1]
		}
		if p, ok := strings.CutPrefix(word, ">"); ok {
			password = p
		}
	}
	return user, password
}

// useAlgorithms uses all of them, and asks Redis what it did not permit.
func useAlgorithms(t *testing.T, rdb redis.UniversalClient, do func(...string) (string, error)) {
	t.Helper()
	for _, a := range []hybrid.Algorithm{
		hybrid.TokenBucket, hybrid.LeakyBucket, hybrid.FixedWindow, hybrid.SlidingLog, hybrid.RollingWindow,
	} {
		if err := useAll(t.Context(), rdb, a.String(), hybrid.WithAlgorithm(a)); err != nil {
			t.Errorf("%v: %v", a, err)
		}
	}
	if err := useAll(t.Context(), rdb, "tiers", hybrid.WithTiers(hybrid.PerHour(1_000_000))); err != nil {
		t.Errorf("tiers: %v", err)
	}
	if log, err := do("ACL", "LOG"); err != nil || !strings.HasPrefix(log, "*0") {
		t.Errorf("not permitted: %s, %v", log, err)
	}
}

// useAll does everything that a limiter does to Redis.
func useAll(ctx context.Context, rdb redis.UniversalClient, name string, option hybrid.Option) error {
	var wrong atomic.Value
	lim, err := hybrid.New(rdb, hybrid.PerSecond(50), hybrid.WithName(name), option,
		hybrid.WithRemoteTimeout(400*time.Millisecond), hybrid.WithExpectedInstances(1),
		hybrid.WithEvents(func(e hybrid.Event) {
			if m, ok := e.(hybrid.Misconfigured); ok {
				wrong.Store(m.Err)
			}
		}), hybrid.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	for range 200 {
		if _, err := lim.Allow(ctx, "key"); err != nil {
			return err
		}
	}
	if _, err := lim.Wait(ctx, "key"); err != nil {
		return err
	}
	if res, err := lim.Peek(ctx, "key"); err != nil || res.Source == hybrid.SourceDegraded {
		return fmt.Errorf("peek: %v by %v", err, res.Source)
	}
	if err := lim.SetLimit(hybrid.PerSecond(20)); err != nil {
		return err
	}
	if _, err := lim.Allow(ctx, "key"); err != nil {
		return err
	}
	if err := lim.Reset(ctx, "key"); err != nil {
		return err
	}
	if err := lim.Close(); err != nil {
		return err
	}
	err, _ = wrong.Load().(error)
	return err
}

// The files that the documents name in code exist.
func TestNamedFoldersExist(t *testing.T) {
	for _, m := range regexp.MustCompile("`((?:examples|contrib|hybrid|internal)/[a-z/]+)`").FindAllStringSubmatch(read(t, "requirements.md"), -1) {
		if _, err := os.Stat(filepath.Join("..", m[1])); err != nil {
			t.Errorf("requirements.md names %s: %v", m[1], err)
		}
	}
}
