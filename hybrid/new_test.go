package hybrid_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

const day = 24 * time.Hour

// unreachable is a client that counts how often it dials, in vain.
func unreachable(t *testing.T) (*redis.Client, *atomic.Int64) {
	t.Helper()
	dials := new(atomic.Int64)
	rdb := redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:1",
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			dials.Add(1)
			return nil, errors.New("unreachable")
		},
	})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb, dials
}

func TestNewRefusesWrongArguments(t *testing.T) {
	type options []hybrid.Option
	ok := hybrid.PerSecond(10)
	nan, inf := math.NaN(), math.Inf(1)
	tests := []struct {
		name    string
		limit   hybrid.Limit
		options options
		field   string
	}{
		{"zero limit", hybrid.Limit{}, nil, "Limit"},
		{"rate 0", hybrid.PerSecond(0).WithBurst(1), nil, "Limit"},
		{"negative rate", hybrid.PerSecond(-1).WithBurst(1), nil, "Limit"},
		{"period 0", hybrid.Per(1, 0), nil, "Limit"},
		{"negative period", hybrid.Per(1, -time.Second), nil, "Limit"},
		{"burst 0", ok.WithBurst(0), nil, "Limit"},
		{"negative burst", ok.WithBurst(-1), nil, "Limit"},
		{"too large", hybrid.Per(7, 3*time.Second).WithBurst(2_000_000_000), nil, "Limit"},
		{"share 0", ok, options{hybrid.WithLocalShare(0)}, "WithLocalShare"},
		{"negative share", ok, options{hybrid.WithLocalShare(-0.1)}, "WithLocalShare"},
		{"share above 1", ok, options{hybrid.WithLocalShare(math.Nextafter(1, 2))}, "WithLocalShare"},
		{"share NaN", ok, options{hybrid.WithLocalShare(nan)}, "WithLocalShare"},
		{"a reserve of all", ok, options{hybrid.WithPriorityReserve(1)}, "WithPriorityReserve"},
		{"a negative reserve", ok, options{hybrid.WithPriorityReserve(-0.1)}, "WithPriorityReserve"},
		{"a reserve NaN", ok, options{hybrid.WithPriorityReserve(nan)}, "WithPriorityReserve"},
		{"share Inf", ok, options{hybrid.WithLocalShare(inf)}, "WithLocalShare"},
		{"share -Inf", ok, options{hybrid.WithLocalShare(-inf)}, "WithLocalShare"},
		{"share of less than a request", ok, options{hybrid.WithLocalShare(0.099)}, "WithLocalShare"},
		{"horizon 0", ok, options{hybrid.WithLeaseHorizon(0)}, "WithLeaseHorizon"},
		{"short horizon", ok, options{hybrid.WithLeaseHorizon(10*time.Millisecond - 1)}, "WithLeaseHorizon"},
		{"long horizon", ok, options{hybrid.WithLeaseHorizon(5*time.Second + 1)}, "WithLeaseHorizon"},
		{"time-out 0", ok, options{hybrid.WithRemoteTimeout(0)}, "WithRemoteTimeout"},
		{"negative time-out", ok, options{hybrid.WithRemoteTimeout(-time.Second)}, "WithRemoteTimeout"},
		{"short time-out", ok, options{hybrid.WithRemoteTimeout(time.Millisecond - 1)}, "WithRemoteTimeout"},
		{"time-out of half a lease", ok, options{hybrid.WithRemoteTimeout(500 * time.Millisecond)}, "WithRemoteTimeout"},
		{"no instances", ok, options{hybrid.WithExpectedInstances(0)}, "WithExpectedInstances"},
		{"negative instances", ok, options{hybrid.WithExpectedInstances(-1)}, "WithExpectedInstances"},
		{"head-room 0", ok, options{hybrid.WithHeadroom(0)}, "WithHeadroom"},
		{"negative head-room", ok, options{hybrid.WithHeadroom(-1)}, "WithHeadroom"},
		{"head-room NaN", ok, options{hybrid.WithHeadroom(nan)}, "WithHeadroom"},
		{"head-room Inf", ok, options{hybrid.WithHeadroom(inf)}, "WithHeadroom"},
		{"unknown policy", ok, options{hybrid.WithOutagePolicy(hybrid.FailClosed + 1)}, "WithOutagePolicy"},
		{"no keys", ok, options{hybrid.WithMaxKeys(0)}, "WithMaxKeys"},
		{"negative keys", ok, options{hybrid.WithMaxKeys(-1)}, "WithMaxKeys"},
		{"instances of a share that is not used", ok, options{hybrid.WithOutagePolicy(hybrid.FailOpen), hybrid.WithExpectedInstances(1)}, "WithExpectedInstances"},
		{"instances of a share that is not used", ok, options{hybrid.WithExpectedInstances(4), hybrid.WithOutagePolicy(hybrid.FailClosed)}, "WithExpectedInstances"},
		{"head-room of a share that is not used", ok, options{hybrid.WithOutagePolicy(hybrid.FailClosed), hybrid.WithHeadroom(1)}, "WithHeadroom"},
	}
	for _, tt := range tests {
		rdb, dials := unreachable(t)
		lim, err := hybrid.New(rdb, tt.limit, append(tt.options, hybrid.WithLogger(silent))...)
		var config *hybrid.ConfigError
		switch {
		case lim != nil:
			t.Errorf("%s: got a limiter", tt.name)
		case !errors.As(err, &config):
			t.Errorf("%s: error %v, want a *ConfigError", tt.name, err)
		case config.Field != tt.field:
			t.Errorf("%s: the field is %q, want %q", tt.name, config.Field, tt.field)
		case config.Reason == "" || !strings.Contains(err.Error(), tt.field):
			t.Errorf("%s: the error says %q", tt.name, err)
		}
		want(t, tt.name+": dials", dials.Load(), 0)
	}
}

func TestNewAcceptsTheEdges(t *testing.T) {
	ok := hybrid.PerSecond(10)
	for name, options := range map[string][]hybrid.Option{
		"defaults":          nil,
		"smallest share":    {hybrid.WithLocalShare(0.1)},
		"whole share":       {hybrid.WithLocalShare(1)},
		"shortest horizon":  {hybrid.WithLeaseHorizon(10 * time.Millisecond)},
		"longest horizon":   {hybrid.WithLeaseHorizon(5 * time.Second)},
		"shortest time-out": {hybrid.WithRemoteTimeout(time.Millisecond)},
		"longest time-out":  {hybrid.WithRemoteTimeout(500*time.Millisecond - 1)},
		"one key":           {hybrid.WithMaxKeys(1)},
		"fail open":         {hybrid.WithOutagePolicy(hybrid.FailOpen)},
		"a share's shape":   {hybrid.WithHeadroom(0.5), hybrid.WithExpectedInstances(100), hybrid.WithOutagePolicy(hybrid.Share)},
	} {
		rdb, dials := unreachable(t)
		lim, err := hybrid.New(rdb, ok, append(options, hybrid.WithLogger(silent))...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := lim.Close(); err != nil {
			t.Errorf("%s: Close: %v", name, err)
		}
		want(t, name+": dials", dials.Load(), 0)
	}
}

// wrapped is a client of the user's own.
type wrapped struct{ *redis.Client }

func TestNewRefusesNilClients(t *testing.T) {
	for name, rdb := range map[string]redis.UniversalClient{
		"nil":             nil,
		"nil Client":      (*redis.Client)(nil),
		"nil Cluster":     (*redis.ClusterClient)(nil),
		"nil Ring":        (*redis.Ring)(nil),
		"nil of a user's": (*wrapped)(nil),
	} {
		_, err := hybrid.New(rdb, hybrid.PerSecond(1), hybrid.WithLogger(silent))
		var config *hybrid.ConfigError
		if !errors.As(err, &config) || config.Field != "New" || !strings.Contains(config.Reason, "nil") {
			t.Errorf("%s: error %v, want a *ConfigError of New", name, err)
		}
	}
}

// A URL as an address would be an outage for ever.
func TestNewRefusesURLsAsAddresses(t *testing.T) {
	const secret = "redis://:secret@localhost:6379"
	for name, rdb := range map[string]redis.UniversalClient{
		"Client":          redis.NewClient(&redis.Options{Addr: secret}),
		"TLS":             redis.NewClient(&redis.Options{Addr: "rediss://localhost:6379"}),
		"advised":         redis.NewUniversalClient(hybrid.RedisOptions(secret)),
		"Cluster":         redis.NewUniversalClient(hybrid.RedisOptions("localhost:6379", secret)),
		"Ring":            redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "localhost:6379", "b": secret}}),
		"one of a user's": &wrapped{redis.NewClient(&redis.Options{Addr: secret})},
	} {
		_, err := hybrid.New(rdb, hybrid.PerSecond(1), hybrid.WithLogger(silent))
		_ = rdb.Close()
		var config *hybrid.ConfigError
		if !errors.As(err, &config) || config.Field != "New" || !strings.Contains(config.Reason, "redis.ParseURL") {
			t.Errorf("%s: error %v, want a *ConfigError of New", name, err)
		}
		if strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("%s: the password is told: %v", name, err)
		}
	}
	for name, rdb := range map[string]redis.UniversalClient{
		"socket":   redis.NewClient(&redis.Options{Addr: "/run/redis.sock"}),
		"Sentinel": redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"localhost:26379"}}),
		"IPv6":     redis.NewClient(&redis.Options{Addr: "[::1]:6379"}),
	} {
		lim, err := hybrid.New(rdb, hybrid.PerSecond(1), hybrid.WithLogger(silent))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_, _ = lim.Close(), rdb.Close()
	}
}

func TestLimitBeyondExactNumbersNamesTheFigure(t *testing.T) {
	rdb, _ := unreachable(t)
	_, err := hybrid.New(rdb, hybrid.Per(7, 3*time.Second).WithBurst(2_000_000_000), hybrid.WithLogger(silent))
	// Twice the burst in micro-tokens, times the 3 of 7/3, plus the 7.
	for _, figure := range []string{"12000000000000007", "2^53", "9007199254740992", `7/3s burst 2000000000`} {
		if err == nil || !strings.Contains(err.Error(), figure) {
			t.Errorf("the error %v does not name %s", err, figure)
		}
	}

	// 1 per 366 days is 1/31622400 of a micro-token per microsecond, so that a
	// burst of 142 needs 8.98e15 and one of 143 needs 9.04e15.
	yearly := hybrid.Per(1, 366*day)
	if lim, err := hybrid.New(rdb, yearly.WithBurst(142), hybrid.WithLogger(silent)); err != nil {
		t.Error(err)
	} else if err := lim.Close(); err != nil {
		t.Error(err)
	}
	if _, err := hybrid.New(rdb, yearly.WithBurst(143), hybrid.WithLogger(silent)); err == nil {
		t.Error("a burst of 143 per 366 days was accepted")
	}
}

func TestNewWorksWhileRedisIsDown(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		r.Kill()
		lim := start(t, r, hybrid.PerSecond(10))
		want(t, "dials of New", r.Counts().Dials, 0)
		res := allow(t, lim)
		if !res.Allowed || res.Source != hybrid.SourceDegraded {
			t.Errorf("first decision without Redis: %+v", res)
		}
		r.RestartEmpty()
		time.Sleep(time.Second)
		if res := allowN(t, lim, "other", 1); !res.Allowed || res.Source != hybrid.SourceRedis {
			t.Errorf("first decision with Redis: %+v", res)
		}
	})
}

func TestNewDoesNoIOAndLeavesTheClientOpen(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		rdb := r.Client(advised)
		lim := startOn(t, rdb, hybrid.PerSecond(10))
		time.Sleep(time.Minute)
		want(t, "dials of an unused limiter", r.Counts().Dials, 0)
		allow(t, lim)
		if err := lim.Close(); err != nil {
			t.Error(err)
		}
		if err := rdb.Ping(t.Context()).Err(); err != nil {
			t.Errorf("the client after Close: %v", err)
		}
		want(t, "dials", r.Counts().Dials, 1)
	})
}

func TestNamesKeepLimitersApart(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		five, six := hybrid.PerHour(5), hybrid.PerHour(6)
		a, b := start(t, r, five), start(t, r, six)
		want(t, "default name", a.Name(), "5/h")
		want(t, "default name", start(t, r, five.WithBurst(2)).Name(), "5/h burst 2")
		want(t, "of 5/h", drain(t, a, "k"), 5)
		want(t, "of 6/h", drain(t, b, "k"), 6)
		want(t, "of 5/h in another process", drain(t, start(t, r, five), "k"), 0)
		want(t, "of 5/h under another name", drain(t, start(t, r, five, hybrid.WithName("x")), "k"), 5)
		want(t, "of 6/h under that name", drain(t, start(t, r, six, hybrid.WithName("x")), "k"), 0)
		want(t, "Name", start(t, r, six, hybrid.WithName("x")).Name(), "x")
		want(t, "Limit", b.Limit(), six)
	})
}

func TestNewNeitherChangesNorKeepsItsOptions(t *testing.T) {
	rdb, _ := unreachable(t)
	options := make([]hybrid.Option, 1, 4)
	options[0] = hybrid.WithName("first")
	a, err := hybrid.New(rdb, hybrid.PerSecond(1), append(options, hybrid.WithLogger(silent))...)
	if err != nil {
		t.Fatal(err)
	}
	options[0] = hybrid.WithName("second")
	want(t, "Name", a.Name(), "first")
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}
