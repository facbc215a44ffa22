package main

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// An action is something that a button does to Redis.
type action string

const (
	freeze       action = "freeze"
	thaw         action = "thaw"
	kill         action = "kill"
	restart      action = "restart"
	restartEmpty action = "restart-empty"
	failOver     action = "fail-over"
)

var actions = []action{freeze, thaw, kill, restart, restartEmpty, failOver}

// text is what an action does, for the log.
func (a action) text() string {
	return map[action]string{
		freeze: "is frozen: connections stay, nothing is answered", thaw: "goes on",
		kill: "is killed", restart: "starts with its data", restartEmpty: "starts without its data",
		failOver: "the master is killed; the sentinels promote the replica",
	}[a]
}

// A setup is the Redis that the instances share.
type setup interface {
	// where says what it is.
	where() string
	// client makes a client whose connections go over the wire. It is the caller's
	// to close.
	client(w *wire) redis.UniversalClient
	// do does what a button says. lost reports whether Redis loses its data by it.
	do(a action) (lost bool, err error)
	// cannot says why there is no such action here, empty if there is.
	cannot(a action) string
	close()
}

// connect finds the Redis for the flag -redis.
func connect(kind string) (setup, error) {
	if kind == "auto" {
		kind = "mini"
		if _, err := exec.LookPath("redis-server"); err == nil {
			kind = "server"
		}
	}
	owner := &redistest.Owner{}
	var s setup
	err := owner.Try(func() {
		switch kind {
		case "mini":
			s = &switched{owner: owner, name: "miniredis, inside this program", box: redistest.MiniTCP(owner)}
		case "server":
			s = &switched{owner: owner, name: "a redis-server process of this program", box: redistest.Server(owner)}
		case "sentinel":
			s = &sentinel{owner: owner, set: redistest.Sentinel(owner)}
		}
	})
	if err != nil {
		owner.Close()
		return nil, err
	}
	if s == nil {
		return connectURL(kind)
	}
	return s, nil
}

// A box is a server with switches: miniredis or a process.
type box interface {
	redistest.Switches
	Client(opts ...func(*redis.Options)) *redis.Client
	Dial(ctx context.Context, network, addr string) (net.Conn, error)
}

// switched is a server that this program has started.
type switched struct {
	owner *redistest.Owner
	name  string
	box   box
}

func (s *switched) where() string { return s.name }

func (s *switched) client(w *wire) redis.UniversalClient {
	return s.box.Client(func(o *redis.Options) {
		w.dial = o.Dialer
		wide := hybrid.RedisOptions(o.Addr)
		wide.PoolSize, wide.Dialer = o.PoolSize, w.Dial
		*o = *wide.Simple()
	})
}

func (s *switched) do(a action) (lost bool, err error) {
	err = s.owner.Try(func() {
		switch a {
		case freeze:
			s.box.Freeze()
		case thaw:
			s.box.Thaw()
		case kill:
			s.box.Kill()
		case restart:
			s.box.RestartWithData()
		case restartEmpty:
			s.box.RestartEmpty()
			lost = true
		}
	})
	return lost, err
}

func (s *switched) cannot(a action) string {
	if a == failOver {
		return "This Redis has no replica. Start with -redis sentinel."
	}
	return ""
}

func (s *switched) close() { s.owner.Close() }

// sentinel is a master with a replica and three sentinels.
type sentinel struct {
	owner *redistest.Owner
	set   *redistest.SentinelSet
}

func (*sentinel) where() string { return "a master, a replica and three sentinels" }

func (s *sentinel) client(w *wire) redis.UniversalClient {
	return s.set.Client(func(o *redis.FailoverOptions) {
		w.dial = tcp
		wide := hybrid.RedisOptions(o.SentinelAddrs...)
		wide.MasterName, wide.Dialer = o.MasterName, w.Dial
		*o = *wide.Failover()
	})
}

func (s *sentinel) do(a action) (bool, error) {
	// The replica may lack what the master was told last.
	return a == freeze || a == failOver, s.owner.Try(func() {
		switch a {
		case freeze:
			s.set.Freeze() // they do so too if it lasts for a second
		case thaw:
			s.set.Thaw()
		case failOver:
			s.set.Kill() // the sentinels promote the replica after a second
		}
	})
}

func (*sentinel) cannot(a action) string {
	switch a {
	case kill:
		return "Use fail over: it kills the master."
	case restart, restartEmpty:
		return "The first master stays dead after a fail-over."
	}
	return ""
}

func (s *sentinel) close() { s.owner.Close() }

// pingLimit is for a server of the user's to answer.
const pingLimit = 3 * time.Second

// foreign is a server of the user's. It is left alone: an outage is made by cutting
// this program's own connections.
type foreign struct {
	options *redis.Options
	wires   []*wire
	state   wireState
}

func connectURL(url string) (setup, error) {
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("-redis %s: %w; want auto, mini, server, sentinel, or a URL such as redis://localhost:6379/0", url, err)
	}
	rdb := redis.NewClient(o)
	defer rdb.Close()
	ctx, cancel := context.WithTimeout(context.Background(), pingLimit)
	defer cancel()
	if err := rdb.Ping(ctx).Err(); err != nil {
		return nil, fmt.Errorf("cannot use Redis at %s: %w; start one with redis-server, give its password as in redis://:password@host:port, or leave out -redis", o.Addr, err)
	}
	return &foreign{options: o}, nil
}

func (f *foreign) where() string { return "your server at " + f.options.Addr }

func (f *foreign) client(w *wire) redis.UniversalClient {
	o := hybrid.RedisOptions(f.options.Addr).Simple()
	o.Username, o.Password, o.DB = f.options.Username, f.options.Password, f.options.DB
	w.dial = redis.NewDialer(&redis.Options{DialTimeout: o.DialTimeout, TLSConfig: f.options.TLSConfig})
	o.Dialer = w.Dial
	w.setAll(f.state)
	f.wires = append(f.wires, w)
	return redis.NewClient(o)
}

func (f *foreign) do(a action) (bool, error) {
	f.state = map[action]wireState{freeze: silent, kill: refused}[a] // else whole
	for _, w := range f.wires {
		w.setAll(f.state)
	}
	return false, nil
}

func (*foreign) cannot(a action) string {
	switch a {
	case restartEmpty:
		return "Your server keeps its data."
	case failOver:
		return "Use your own means: the playground does not touch your server."
	}
	return ""
}

func (*foreign) close() {}
