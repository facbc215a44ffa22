package remote_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/resilient-go/limiter/internal/redistest"
	"github.com/resilient-go/limiter/remote"
)

// effective are the options that matter, as a client of any kind has them.
type effective struct {
	protocol, retries, poolSize, active, idle, dials, dialRetries, pipelines int
	dial, read, write, pool, idleTime                                        time.Duration
	contexts, anonymous                                                      bool
}

var recommendedOptions = effective{
	protocol: 2, retries: 0, poolSize: 64, active: remote.MaxInFlight + remote.MaxProbes, idle: 2, dials: 2, dialRetries: 1, pipelines: -1,
	dial: 70 * time.Millisecond, read: 70 * time.Millisecond, write: 70 * time.Millisecond, pool: 70 * time.Millisecond,
	idleTime: 4 * time.Minute, contexts: true, anonymous: true,
}

func ofSingle(o *redis.Options) effective {
	return effective{
		o.Protocol, o.MaxRetries, o.PoolSize, o.MaxActiveConns, o.MaxIdleConns, o.MaxConcurrentDials, o.DialerRetries, o.PipelinePoolSize,
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout, o.ConnMaxIdleTime,
		o.ContextTimeoutEnabled, o.DisableIdentity,
	}
}

func TestOptionsOfASingleServer(t *testing.T) {
	rdb := redis.NewUniversalClient(remote.Options(70*time.Millisecond, "10.0.0.1:6379"))
	defer func() { _ = rdb.Close() }()
	single, ok := rdb.(*redis.Client)
	if !ok {
		t.Fatalf("a client of type %T", rdb)
	}
	if got := ofSingle(single.Options()); got != recommendedOptions {
		t.Errorf("got %+v, want %+v", got, recommendedOptions)
	}
	if got := single.Options().Addr; got != "10.0.0.1:6379" {
		t.Errorf("the address is %s", got)
	}
	if m := single.Options().MaintNotificationsConfig; m == nil || m.Mode != maintnotifications.ModeDisabled {
		t.Errorf("maintenance notifications: %+v, want them off", m)
	}
}

func TestOptionsOfACluster(t *testing.T) {
	rdb := redis.NewUniversalClient(remote.Options(70*time.Millisecond, "10.0.0.1:6379", "10.0.0.2:6379"))
	defer func() { _ = rdb.Close() }()
	cluster, ok := rdb.(*redis.ClusterClient)
	if !ok {
		t.Fatalf("a client of type %T", rdb)
	}
	o := cluster.Options()
	got := effective{
		o.Protocol, o.MaxRetries, o.PoolSize, o.MaxActiveConns, o.MaxIdleConns, o.MaxConcurrentDials, o.DialerRetries, o.PipelinePoolSize,
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout, o.ConnMaxIdleTime,
		o.ContextTimeoutEnabled, o.DisableIdentity,
	}
	want := recommendedOptions
	want.retries = -1 // which means none as well
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if o.MaxRedirects < 1 {
		t.Errorf("%d redirects: MOVED would not be followed", o.MaxRedirects)
	}
}

func TestOptionsOfSentinel(t *testing.T) {
	options := remote.Options(70*time.Millisecond, "10.0.0.1:26379", "10.0.0.2:26379")
	options.MasterName = "main"
	rdb := redis.NewUniversalClient(options)
	defer func() { _ = rdb.Close() }()
	failover, ok := rdb.(*redis.Client)
	if !ok {
		t.Fatalf("a client of type %T", rdb)
	}
	if got := ofSingle(failover.Options()); got != recommendedOptions {
		t.Errorf("got %+v, want %+v", got, recommendedOptions)
	}
}

// With these options go-redis itself gives a frozen server up in time, whether
// the connection exists or not, and finds one that is back at once.
func TestOptionsAtWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := redistest.Bubble(t)
		rdb := recommended(t, r)
		for range 3 {
			r.Freeze()
			begun := time.Now()
			if err := rdb.Ping(t.Context()).Err(); err == nil || time.Since(begun) != timeout {
				t.Errorf("%v after %v, want an error after %v", err, time.Since(begun), timeout)
			}
			r.Thaw()
			time.Sleep(time.Second)
			begun = time.Now()
			if err := rdb.Ping(t.Context()).Err(); err != nil || time.Since(begun) != 0 {
				t.Errorf("%v after %v, want an answer at once", err, time.Since(begun))
			}
		}
		r.Kill()
		for range 30 {
			begun := time.Now()
			if err := rdb.Ping(t.Context()).Err(); err == nil || time.Since(begun) != 0 {
				t.Errorf("%v after %v, want an error at once", err, time.Since(begun))
			}
		}
		r.RestartEmpty()
		begun := time.Now()
		if err := rdb.Ping(t.Context()).Err(); err != nil || time.Since(begun) != 0 {
			t.Errorf("%v after %v, want an answer at once", err, time.Since(begun))
		}
	})
}
