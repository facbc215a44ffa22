package redistest

import (
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
)

// fakeT is a test that may fail, for what constructors do then.
type fakeT struct {
	testing.TB
	cleanups []func()
	failed   bool
	output   strings.Builder
}

// run runs f like a test and returns what it printed.
func run(t *testing.T, f func(t testing.TB)) (output string, failed bool) {
	t.Helper()
	fake := &fakeT{TB: t}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() {
			for len(fake.cleanups) > 0 {
				last := len(fake.cleanups) - 1
				cleanup := fake.cleanups[last]
				fake.cleanups = fake.cleanups[:last]
				cleanup()
			}
		}()
		f(fake)
	}()
	<-ended
	return fake.output.String(), fake.failed
}

func (f *fakeT) Helper()          {}
func (f *fakeT) Failed() bool     { return f.failed }
func (f *fakeT) Cleanup(c func()) { f.cleanups = append(f.cleanups, c) }

func (f *fakeT) Logf(format string, args ...any) {
	f.output.WriteString(fmt.Sprintf(format, args...) + "\n")
}

func (f *fakeT) Fatalf(format string, args ...any) {
	f.failed = true
	f.Logf(format, args...)
	runtime.Goexit()
}

func (f *fakeT) Fatal(args ...any) { f.Fatalf("%v", args) }

func TestBubbleOutsideOfBubble(t *testing.T) {
	output, failed := run(t, func(t testing.TB) { Bubble(t) })
	if !failed || !strings.Contains(output, "outside of a synctest bubble") {
		t.Errorf("failed = %v: %q", failed, output)
	}
}

func TestServerIsNotInstalled(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	output, failed := run(t, func(t testing.TB) { Server(t) })
	if !failed || !strings.Contains(output, "install it with: ") || !strings.Contains(output, "redis") {
		t.Errorf("failed = %v: %q", failed, output)
	}
}

func TestServerDoesNotStart(t *testing.T) {
	output, failed := run(t, func(t testing.TB) { Server(t, "no-such-directive yes") })
	if !failed || !strings.Contains(output, "does not start") {
		t.Errorf("failed = %v: %q", failed, output)
	}
	if !strings.Contains(output, "Bad directive") {
		t.Errorf("the output of the process is missing in %q", output)
	}
}

func TestServerPortTaken(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	attempts := 0
	startRedis(t, t.TempDir(), func() []string {
		attempts++
		if attempts == 1 {
			return []string{fmt.Sprintf("port %d", ln.Addr().(*net.TCPAddr).Port)}
		}
		return nil
	})
	if attempts != 2 {
		t.Errorf("started in attempt %d, want 2", attempts)
	}
}

func TestServerConf(t *testing.T) {
	r := Server(t, "maxmemory 3mb", "appendonly yes")
	got, err := r.Do("CONFIG", "GET", "maxmemory")
	if err != nil || !strings.Contains(got, "3145728") {
		t.Errorf("maxmemory: %q, %v", got, err)
	}
	direct, err := net.Dial("tcp", r.DirectAddr())
	if err != nil {
		t.Fatal(err)
	}
	defer direct.Close()
	if r.DirectAddr() == r.Addr() {
		t.Error("the direct address is that of the proxy")
	}
	// With an append-only file the data survives by itself, too.
	if err := r.Client().Set(t.Context(), "key", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	r.RestartWithData()
	if v, err := r.Client().Get(t.Context(), "key").Result(); v != "v" || err != nil {
		t.Errorf("key = %q, %v", v, err)
	}
	r.Kill()
	if _, err := r.Do("PING"); err == nil {
		t.Error("a killed server answers")
	}
}
