package remote_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/remote"
)

func ExampleKey() {
	fmt.Println(remote.Key("api", "user:10001"))
	fmt.Println(remote.FleetKey("api"))
	// Output:
	// rl:{api:user:10001}
	// rl:{api}
}

// One message asks for three tokens of a bucket of ten.
func ExampleNew() {
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	rdb := redis.NewUniversalClient(remote.Options(patience, server.Addr()))
	defer func() { _ = rdb.Close() }()
	c := remote.New(rdb, remote.Config{
		Holder: "a name of this process", Timeout: patience,
		Guard: func(send func() error) error { return send() }, // or a breaker's Do
	})
	defer c.Close()

	m := &remote.Message{
		Key: remote.Key("api", "ann"), Seq: 1, TTL: time.Second,
		Limit: remote.Limit{Num: 1, Den: 360, Burst: 10 * remote.Unit}, // ten per hour
		Needs: []remote.Need{{Tokens: remote.Unit, Count: 3}},
	}
	answered := make(chan struct{})
	err = c.Acquire(m, func(a remote.Answer, err error) {
		fmt.Println(a.Granted, "granted,", a.Tokens/remote.Unit, "left", err)
		close(answered)
	})
	if err != nil {
		log.Fatal(err)
	}
	<-answered
	// Output: [3] granted, 7 left <nil>
}

// The client is told who has which slots. Usually it asks the nodes.
func ExampleNewMasters() {
	rdb := redis.NewClusterClient(&redis.ClusterOptions{ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
		return []redis.ClusterSlot{
			{Start: 0, End: 8191, Nodes: []redis.ClusterNode{{Addr: "10.0.0.1:6379"}}},
			{Start: 8192, End: 16383, Nodes: []redis.ClusterNode{{Addr: "10.0.0.2:6379"}}},
		}, nil
	}})
	defer func() { _ = rdb.Close() }()
	m := remote.NewMasters(rdb)
	fmt.Println(m.Of(remote.Key("api", "ann")), m.Of(remote.Key("api", "bob")))
	m.Reload() // a call has failed: they may be others by now
	// Output: 10.0.0.2:6379 10.0.0.1:6379
}

// What an error says about Redis.
func ExampleClassOf() {
	for _, err := range []error{nil, io.EOF, errors.New("what?")} {
		class := remote.ClassOf(err)
		fmt.Println(class, class.Unknown()) // did the script run?
	}
	// Output:
	// none false
	// connection true
	// other true
}

// What a client with the defaults of go-redis would make of a server that hangs.
func ExampleAdvice() {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	defer func() { _ = rdb.Close() }()
	for _, advice := range remote.Advice(rdb, 50*time.Millisecond) {
		fmt.Println(advice)
	}
	// Output:
	// DialTimeout 5s is more than 10 times the remote time-out of 50ms: a call that hangs holds its connection for so long
	// ReadTimeout 5s is more than 10 times the remote time-out of 50ms: a call that hangs holds its connection for so long
	// WriteTimeout 5s is more than 10 times the remote time-out of 50ms: a call that hangs holds its connection for so long
	// MaxRetries 3: each probe of a server that is gone dials so many times more
}
