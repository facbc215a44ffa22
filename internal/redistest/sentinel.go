package redistest

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// masterName is what the sentinels call the set they watch.
const masterName = "redistest"

// SentinelSet is a master with a replica, and three sentinels that promote the
// replica when the master is down for a second. Its clients have no proxy. The
// switches are those of the process that is the master at first.
type SentinelSet struct {
	t         testing.TB
	master    *process
	replica   *process
	sentinels []*process

	mu     sync.Mutex // held by the switches
	killed bool
}

// Sentinel starts a [SentinelSet] and waits until all parts know each other.
// Each of conf is a line of the redis.conf of the master and the replica.
func Sentinel(t testing.TB, conf ...string) *SentinelSet {
	t.Helper()
	s := &SentinelSet{t: t}
	node := func(more ...string) *process {
		return startRedis(t, t.TempDir(), func() []string {
			lines := []string{`save ""`, "appendonly no", "repl-diskless-sync-delay 0"}
			return append(append(lines, more...), conf...)
		})
	}
	s.master = node()
	s.replica = node(fmt.Sprintf("replicaof 127.0.0.1 %d", s.master.port))
	// A sentinel asks the master for its replicas at once, and then each 10
	// seconds: the replica has to be known before.
	s.await("the replica is not in sync", func() error {
		return s.replica.has("master_link_status:up", "INFO", "replication")
	})
	for range 3 {
		s.sentinels = append(s.sentinels, startRedis(t, t.TempDir(), func() []string {
			return []string{
				fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d 2", masterName, s.master.port),
				fmt.Sprintf("sentinel down-after-milliseconds %s 1000", masterName),
				fmt.Sprintf("sentinel failover-timeout %s 5000", masterName),
			}
		}, "--sentinel"))
	}
	for _, p := range s.sentinels {
		s.await("the sentinels do not see each other", func() error {
			return p.has("status=ok,address="+loopback(s.master.port)+",slaves=1,sentinels=3",
				"INFO", "sentinel")
		})
	}
	return s
}

// Client returns a client of the current master. Its options are the defaults
// of go-redis, apart from the name and the addresses, and what opts change.
// The client is closed when the test ends.
func (s *SentinelSet) Client(opts ...func(*redis.FailoverOptions)) *redis.Client {
	o := &redis.FailoverOptions{MasterName: masterName}
	for _, p := range s.sentinels {
		o.SentinelAddrs = append(o.SentinelAddrs, loopback(p.port))
	}
	for _, opt := range opts {
		opt(o)
	}
	c := redis.NewFailoverClient(o)
	s.t.Cleanup(func() { c.Close() })
	return c
}

// Kill ends the first master with SIGKILL. It stays dead.
func (s *SentinelSet) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.master.kill()
	s.killed = true
}

// Freeze stops the first master with SIGSTOP.
func (s *SentinelSet) Freeze() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.killed {
		return
	}
	if err := stopProcess(s.master.cmd.Process); err != nil {
		s.t.Errorf("redistest: the master cannot be frozen: %v", err)
	}
}

// Thaw ends a Freeze with SIGCONT. If the replica was promoted meanwhile, the
// first master takes itself for a master until the sentinels demote it.
func (s *SentinelSet) Thaw() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.killed {
		return
	}
	if err := continueProcess(s.master.cmd.Process); err != nil {
		s.t.Errorf("redistest: the master cannot be thawed: %v", err)
	}
}

// AwaitFailover waits until the replica is a master and all sentinels say so.
func (s *SentinelSet) AwaitFailover() {
	s.t.Helper()
	s.await("the replica is not promoted", func() error {
		return s.replica.has("role:master", "INFO", "replication")
	})
	for _, p := range s.sentinels {
		s.await("a sentinel does not know the new master", func() error {
			return p.has(fmt.Sprintf("\r\n%d\r\n", s.replica.port),
				"SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterName)
		})
	}
}

// await polls f. The text says what it means if f keeps failing.
func (s *SentinelSet) await(text string, f func() error) {
	s.t.Helper()
	if err := poll(startLimit, f); err != nil {
		s.t.Fatalf("redistest: %s: %v", text, err)
	}
}

// has fails if the reply to the command does not contain want.
func (p *process) has(want string, command ...string) error {
	reply, err := p.do(command...)
	if err == nil && !strings.Contains(reply, want) {
		err = fmt.Errorf("%s: got %q, want %q in it", strings.Join(command, " "), reply, want)
	}
	return err
}
