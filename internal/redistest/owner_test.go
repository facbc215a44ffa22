package redistest_test

import (
	"os"
	"strings"
	"testing"

	"github.com/resilient-go/limiter/internal/redistest"
)

// A program has servers with switches as a test has, and they end with it.
func TestOwnerStartsAndEndsServers(t *testing.T) {
	var o redistest.Owner
	defer o.Close()
	var mini *redistest.Mini
	var server *redistest.Redis
	err := o.Try(func() {
		mini = redistest.MiniTCP(&o)
		server = redistest.Server(&o)
	})
	if err != nil {
		t.Fatal(err)
	}
	rdb := server.Client()
	for name, ping := range map[string]func() error{
		"miniredis":    func() error { return mini.Client().Ping(t.Context()).Err() },
		"redis-server": func() error { return rdb.Ping(t.Context()).Err() },
	} {
		if err := ping(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := o.Try(server.RestartWithData); err != nil {
		t.Errorf("restart: %v", err)
	}
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Errorf("after a restart: %v", err)
	}
	dir := o.TempDir()
	o.Close()
	o.Close()
	if _, err := server.Do("PING"); err == nil {
		t.Error("redis-server still answers after Close")
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
}

// What would fail a test is an error of Try, also if it would end the test.
func TestOwnerReturnsFailures(t *testing.T) {
	var o redistest.Owner
	defer o.Close()
	reached := false
	err := o.Try(func() {
		o.Errorf("first %d", 1)
		o.Fatalf("second %d", 2)
		reached = true
	})
	if err == nil || !strings.Contains(err.Error(), "first 1\nsecond 2") || reached {
		t.Errorf("got %v, reached the end: %v; want both failures and a stop", err, reached)
	}
	if err := o.Try(func() {}); err != nil {
		t.Errorf("failures of one Try in the next: %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if err := o.Try(func() { redistest.Server(&o) }); err == nil || !strings.Contains(err.Error(), "install it with") {
		t.Errorf("without redis-server: %v", err)
	}
	defer func() {
		if recover() != "mine" {
			t.Error("a panic of the function was kept back")
		}
	}()
	_ = o.Try(func() { panic("mine") })
}
