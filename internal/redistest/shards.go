package redistest

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// ShardSet is a Redis Cluster of several masters, each with a replica that takes its
// place when it is down for a second. Its clients have no proxy. While a shard is
// down the others serve: full coverage is not required.
type ShardSet struct {
	t        testing.TB
	masters  []*process
	replicas []*process
	ids      []string // of the masters
}

// Shards starts a [ShardSet] of n masters with equal parts of the slots, and waits
// until all nodes know each other. Each of conf is a line of the redis.conf of all.
func Shards(t testing.TB, n int, conf ...string) *ShardSet {
	t.Helper()
	s := &ShardSet{t: t}
	for range n {
		s.masters = append(s.masters, s.start(conf))
		s.replicas = append(s.replicas, s.start(conf))
	}
	for i, p := range s.masters {
		s.must(p, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		s.must(p, "CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(i*slots/n), strconv.Itoa((i+1)*slots/n-1))
		s.ids = append(s.ids, regexp.MustCompile("[0-9a-f]{40}").FindString(s.must(p, "CLUSTER", "MYID")))
	}
	first := s.masters[0]
	for _, p := range s.nodes()[1:] {
		s.must(p, "CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(first.port), strconv.Itoa(first.bus))
	}
	for _, p := range s.nodes() {
		s.await("the nodes do not know each other", func() error {
			return p.has(fmt.Sprintf("cluster_known_nodes:%d\r\n", 2*n), "CLUSTER", "INFO")
		})
	}
	for i, p := range s.replicas {
		s.await("a replica does not know its master", func() error {
			_, err := p.do("CLUSTER", "REPLICATE", s.ids[i])
			return err
		})
	}
	for _, p := range s.nodes() {
		s.await("the cluster is not complete", func() error {
			nodes, err := p.do("CLUSTER", "NODES")
			if err == nil && strings.Count(nodes, "slave ") != n {
				err = fmt.Errorf("%d replicas of %d", strings.Count(nodes, "slave "), n)
			}
			if err != nil {
				return err
			}
			return p.has("cluster_state:ok\r\n", "CLUSTER", "INFO")
		})
	}
	for _, p := range s.replicas {
		s.await("a replica is not in sync", func() error { return p.has("master_link_status:up", "INFO", "replication") })
	}
	return s
}

// slots is how many there are.
const slots = 16384

// start starts a node that knows no other.
func (s *ShardSet) start(conf []string) *process {
	bus := 0
	p := startRedis(s.t, s.t.TempDir(), func() []string {
		var err error
		if bus, err = freePort(); err != nil {
			s.t.Fatalf("redistest: no free port: %v", err)
		}
		lines := []string{
			`save ""`, "appendonly no", "repl-diskless-sync-delay 0",
			"cluster-enabled yes", "cluster-node-timeout 1000", "cluster-require-full-coverage no",
			"cluster-replica-validity-factor 0", "cluster-allow-replica-migration no",
			fmt.Sprintf("cluster-port %d", bus),
		}
		return append(lines, conf...)
	})
	p.bus = bus
	return p
}

func (s *ShardSet) nodes() []*process {
	return append(s.masters[:len(s.masters):len(s.masters)], s.replicas...)
}

func (s *ShardSet) must(p *process, command ...string) string {
	s.t.Helper()
	reply, err := p.do(command...)
	if err != nil {
		s.t.Fatalf("redistest: %s: %v", strings.Join(command, " "), err)
	}
	return reply
}

func (s *ShardSet) await(text string, f func() error) {
	s.t.Helper()
	if err := poll(startLimit, f); err != nil {
		s.t.Fatalf("redistest: %s: %v", text, err)
	}
}

// Client returns a client of the cluster. Its options are the defaults of go-redis,
// apart from the addresses, and what opts change. The client is closed when the test
// ends.
func (s *ShardSet) Client(opts ...func(*redis.ClusterOptions)) *redis.ClusterClient {
	o := &redis.ClusterOptions{}
	for i := range s.masters {
		o.Addrs = append(o.Addrs, s.Addr(i))
	}
	for _, opt := range opts {
		opt(o)
	}
	c := redis.NewClusterClient(o)
	s.t.Cleanup(func() { c.Close() })
	return c
}

// Addr is the address of a first master, counted from 0.
func (s *ShardSet) Addr(i int) string { return loopback(s.masters[i].port) }

// Do runs a command on a first master and returns the reply as it is on the wire.
func (s *ShardSet) Do(i int, args ...string) (string, error) { return s.masters[i].do(args...) }

// Kill ends a first master with SIGKILL. It stays dead.
func (s *ShardSet) Kill(i int) { s.masters[i].kill() }

// KillAll ends all nodes with SIGKILL.
func (s *ShardSet) KillAll() {
	for _, p := range s.nodes() {
		p.kill()
	}
}

// Freeze stops a first master with SIGSTOP.
func (s *ShardSet) Freeze(i int) {
	s.t.Helper()
	if err := stopProcess(s.masters[i].cmd.Process); err != nil {
		s.t.Errorf("redistest: a master cannot be frozen: %v", err)
	}
}

// Thaw ends a Freeze with SIGCONT. If the replica was promoted meanwhile, the master
// becomes its replica.
func (s *ShardSet) Thaw(i int) {
	s.t.Helper()
	if err := continueProcess(s.masters[i].cmd.Process); err != nil {
		s.t.Errorf("redistest: a master cannot be thawed: %v", err)
	}
}

// Failovers says whether the replicas take the place of their masters by themselves,
// as they do at first.
func (s *ShardSet) Failovers(on bool) {
	s.t.Helper()
	no := "yes"
	if on {
		no = "no"
	}
	for _, p := range s.replicas {
		s.must(p, "CONFIG", "SET", "cluster-replica-no-failover", no)
	}
}

// AwaitPromotion waits until the replica of a first master is a master, and gives the
// instant at which that was seen.
func (s *ShardSet) AwaitPromotion(i int) time.Time {
	s.t.Helper()
	s.await("the replica is not promoted", func() error { return s.replicas[i].has("role:master", "INFO", "replication") })
	return time.Now()
}

// MoveSlot moves a slot with all its keys from one first master to another, the way
// redis-cli does: while it is under way the one answers ASK for what it has no more.
func (s *ShardSet) MoveSlot(slot, from, to int) {
	s.t.Helper()
	n, src, dst := strconv.Itoa(slot), s.masters[from], s.masters[to]
	s.must(dst, "CLUSTER", "SETSLOT", n, "IMPORTING", s.ids[from])
	s.must(src, "CLUSTER", "SETSLOT", n, "MIGRATING", s.ids[to])
	for {
		keys := bulks(s.must(src, "CLUSTER", "GETKEYSINSLOT", n, "10"))
		if len(keys) == 0 {
			break
		}
		s.must(src, append([]string{"MIGRATE", "127.0.0.1", strconv.Itoa(dst.port), "", "0", "5000", "KEYS"}, keys...)...)
	}
	s.must(dst, "CLUSTER", "SETSLOT", n, "NODE", s.ids[to])
	s.must(src, "CLUSTER", "SETSLOT", n, "NODE", s.ids[to])
}

// bulks reads an array of strings as it is on the wire.
func bulks(reply string) (list []string) {
	lines := strings.Split(reply, "\r\n")
	for i := 1; i+1 < len(lines); i += 2 {
		list = append(list, lines[i+1])
	}
	return list
}
