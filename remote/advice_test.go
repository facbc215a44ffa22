package remote_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/remote"
)

func TestAdviceNamesWhatIsUnsafe(t *testing.T) {
	const timeout = 50 * time.Millisecond
	good := func() *redis.Options { return remote.Options(timeout, "127.0.0.1:1").Simple() }
	with := func(change func(*redis.Options)) redis.UniversalClient {
		o := good()
		change(o)
		return redis.NewClient(o)
	}
	for _, c := range []struct {
		name string
		rdb  redis.UniversalClient
		want string // the options that are named
	}{
		{"recommended", redis.NewClient(good()), ""},
		{"recommended, of a cluster", redis.NewClusterClient(remote.Options(timeout, "127.0.0.1:1", "127.0.0.1:2").Cluster()), ""},
		{"recommended, of Sentinel", redis.NewFailoverClient(func() *redis.FailoverOptions {
			o := remote.Options(timeout, "127.0.0.1:1").Failover()
			o.MasterName = "m"
			return o
		}()), ""},
		{"defaults", redis.NewClient(&redis.Options{}), "DialTimeout ReadTimeout WriteTimeout MaxRetries"},
		{"defaults, of a cluster", redis.NewClusterClient(&redis.ClusterOptions{}), "DialTimeout ReadTimeout WriteTimeout"},
		{"defaults, of a ring", redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}}), "DialTimeout ReadTimeout WriteTimeout MaxRetries"},
		{"no time-out", with(func(o *redis.Options) { o.ReadTimeout = -1 }), "ReadTimeout"},
		{"just too long", with(func(o *redis.Options) { o.WriteTimeout = 501 * time.Millisecond }), "WriteTimeout"},
		{"as long as it may be", with(func(o *redis.Options) { o.WriteTimeout = 500 * time.Millisecond }), ""},
		{"one retry", with(func(o *redis.Options) { o.MaxRetries = 1 }), "MaxRetries"},
		{"few connections", with(func(o *redis.Options) { o.PoolSize = 2 }), "PoolSize"},
	} {
		var names []string
		for _, text := range remote.Advice(c.rdb, timeout) {
			name, _, _ := strings.Cut(text, " ")
			names = append(names, name)
			if strings.HasSuffix(name, ":") || !strings.Contains(text, ":") {
				t.Errorf("%s: %q gives no option and reason", c.name, text)
			}
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s: named are %q, want %q", c.name, got, c.want)
		}
		_ = c.rdb.Close()
	}
}
