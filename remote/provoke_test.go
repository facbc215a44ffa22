package remote_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/internal/redistest"
	"github.com/resilient-go/limiter/remote"
)

// do runs a command of the administrator.
func do(t *testing.T, s *redistest.Redis, args ...string) string {
	t.Helper()
	v, err := s.Do(args...)
	if err != nil {
		t.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
	return v
}

// user has the client log in, and makes go-redis say so when it cannot.
func user(name, password string) func(*redis.Options) {
	return func(o *redis.Options) { o.Username, o.Password = name, password }
}

// Real servers that cannot serve, each with the class that it gives and the
// client that meets it.
var provoked = []struct {
	name   string
	class  remote.Class
	break_ func(t *testing.T, s *redistest.Redis)
	option func(*redis.Options)

	hangsUp bool // the server ends the connection as well
}{
	{name: "wrong type", class: remote.BadKey, break_: func(t *testing.T, s *redistest.Redis) {
		do(t, s, "SET", remote.Key("test", "key"), "mine")
	}},
	{name: "newer format", class: remote.Version, break_: func(t *testing.T, s *redistest.Redis) {
		do(t, s, "HSET", remote.Key("test", "key"), "l", "2 other", "t", "?")
	}},
	{name: "broken state", class: remote.Script, break_: func(t *testing.T, s *redistest.Redis) {
		do(t, s, "HSET", remote.Key("test", "key"), "l", "1 1 360 10000000 0", "o", "?")
	}},
	{name: "no password", class: remote.Forbidden, break_: func(t *testing.T, s *redistest.Redis) {
		do(t, s, "CONFIG", "SET", "requirepass", "secret")
	}, hangsUp: true},
	{name: "wrong password", class: remote.Forbidden, break_: func(t *testing.T, s *redistest.Redis) {
		do(t, s, "CONFIG", "SET", "requirepass", "secret")
	}, option: user("", "wrong")},
	{name: "scripts forbidden", class: remote.Forbidden, break_: func(t *testing.T, s *redistest.Redis) {
		do(t, s, "ACL", "SETUSER", "app", "on", ">p", "~*", "+@all", "-@scripting")
	}, option: user("app", "p")},
	{name: "key forbidden", class: remote.Forbidden, break_: func(t *testing.T, s *redistest.Redis) {
		do(t, s, "ACL", "SETUSER", "app", "on", ">p", "~other:*", "+@all")
	}, option: user("app", "p")},
	{name: "command in the script forbidden", class: remote.Forbidden, break_: func(t *testing.T, s *redistest.Redis) {
		do(t, s, "ACL", "SETUSER", "app", "on", ">p", "~*", "+@all", "-hset")
	}, option: user("app", "p")},
	{name: "unknown command", class: remote.Script, break_: func(_ *testing.T, s *redistest.Redis) {
		s.FailWith("ERR unknown command 'evalsha', with args beginning with: ")
	}},
	{name: "replica", class: remote.Unavailable, break_: func(t *testing.T, s *redistest.Redis) {
		do(t, s, "REPLICAOF", "127.0.0.1", "1")
	}},
	{name: "replica without a master", class: remote.Unavailable, break_: func(t *testing.T, s *redistest.Redis) {
		do(t, s, "CONFIG", "SET", "replica-serve-stale-data", "no")
		do(t, s, "REPLICAOF", "127.0.0.1", "1")
	}},
	{name: "not enough replicas", class: remote.Unavailable, break_: func(t *testing.T, s *redistest.Redis) {
		do(t, s, "CONFIG", "SET", "min-replicas-to-write", "1")
	}},
	{name: "out of memory", class: remote.Unavailable, break_: func(t *testing.T, s *redistest.Redis) {
		do(t, s, "CONFIG", "SET", "maxmemory", "1")
	}},
	{name: "cannot save", class: remote.Unavailable, break_: func(t *testing.T, s *redistest.Redis) {
		dir := strings.Split(do(t, s, "CONFIG", "GET", "dir"), "\r\n")[4]
		if err := os.Mkdir(filepath.Join(dir, "dump.rdb"), 0o700); err != nil {
			t.Fatal(err)
		}
		do(t, s, "CONFIG", "SET", "save", "3600 1")
		do(t, s, "BGSAVE")
		eventually(t, "saving failed", func() bool {
			return strings.Contains(do(t, s, "INFO", "persistence"), "rdb_last_bgsave_status:err")
		})
	}},
	{name: "loading", class: remote.Unavailable, break_: func(_ *testing.T, s *redistest.Redis) {
		s.FailWith("LOADING Redis is loading the dataset in memory")
	}},
	{name: "unheard of", class: remote.Other, break_: func(_ *testing.T, s *redistest.Redis) {
		s.FailWith("WEIRD nobody has seen this")
	}},
	{name: "killed", class: remote.Connection, break_: func(_ *testing.T, s *redistest.Redis) { s.Kill() }},
}

func TestServersThatCannotServe(t *testing.T) {
	for _, p := range provoked {
		t.Run(p.name, func(t *testing.T) {
			s := redistest.Server(t)
			warm(t, newClient(t, s.Client(), patience))
			if p.option == nil {
				p.option = func(*redis.Options) {}
			}
			p.break_(t, s)
			c := newClient(t, s.Client(p.option), patience)
			for range 2 { // also with a connection that exists
				if o := call(c, one("key")); o.class() != p.class {
					t.Errorf("%v, want class %v", o.err, p.class)
				}
				if p.hangsUp {
					break
				}
			}
		})
	}
}

func TestFrozenServer(t *testing.T) {
	s := redistest.Server(t)
	c := newClient(t, s.Client(), 100*time.Millisecond)
	s.Freeze()
	if o := call(c, one("key")); o.class() != remote.Timeout {
		t.Errorf("%v, want class timeout", o.err)
	}
}

func TestServerBusyWithAScript(t *testing.T) {
	s := redistest.Server(t, "busy-reply-threshold 1")
	c := newClient(t, s.Client(), patience)
	warm(t, c)
	other := s.Client(func(o *redis.Options) { o.ReadTimeout, o.MaxRetries = -1, -1 })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		other.Eval(context.Background(), "while true do end", nil)
	}()
	eventually(t, "the server is busy", func() bool {
		o := call(c, one("key"))
		if o.err != nil && o.class() != remote.Unavailable {
			t.Fatalf("%v, want class unavailable", o.err)
		}
		return o.err != nil
	})
	do(t, s, "SCRIPT", "KILL")
	<-ended
}

func TestServerWithoutAPlaceForUs(t *testing.T) {
	s := redistest.Server(t)
	other := s.Client()
	other.Ping(t.Context())
	do(t, s, "CONFIG", "SET", "maxclients", "1")
	// Redis says so and hangs up: which of both is seen is a matter of luck.
	o := call(newClient(t, s.Client(), patience), one("key"))
	if o.class() != remote.Connection && o.class() != remote.Unavailable {
		t.Errorf("%v, want class connection or unavailable", o.err)
	}
}

func TestClusterThatIsDown(t *testing.T) {
	s := redistest.Cluster(t)
	c := newClient(t, s.Client(), patience)
	warm(t, c)
	do(t, s.Redis, "CLUSTER", "DELSLOTSRANGE", "0", "16383")
	if o := call(c, one("key")); o.class() != remote.Unavailable {
		t.Errorf("%v, want class unavailable", o.err)
	}
}
