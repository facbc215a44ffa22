package e2e

import (
	"context"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/hybrid/httplimit"
	"github.com/resilient-go/limiter/internal/redistest"
)

// A Site is a web server of a worker process, behind the middleware.
type Site struct {
	server *http.Server
	lim    *hybrid.Limiter
	rdb    redis.UniversalClient
}

// Open starts the server and answers with its address.
func (s *Site) Open(set Setup, addr *string) error {
	limit, err := hybrid.ParseLimit(set.Limit)
	if err != nil {
		return err
	}
	s.rdb = redis.NewUniversalClient(hybrid.RedisOptionsFor(set.Timeout, set.Addr))
	s.lim, err = hybrid.New(s.rdb, limit, quiet, hybrid.WithName(set.Name),
		hybrid.WithRemoteTimeout(set.Timeout), hybrid.WithExpectedInstances(2))
	if err != nil {
		return err
	}
	limited, err := httplimit.New(s.lim, httplimit.WithKey(httplimit.Fixed("all")))
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.server = &http.Server{Handler: limited(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))}
	go func() { _ = s.server.Serve(listener) }()
	*addr = listener.Addr().String()
	return nil
}

// Close ends the server and tells how many requests the outage policy decided.
func (s *Site) Close(_ Nothing, degraded *uint64) error {
	_ = s.server.Close()
	stats := s.lim.Stats()
	*degraded = stats.Allowed[hybrid.SourceDegraded] + stats.Refused[hybrid.SourceDegraded]
	if err := s.lim.Close(); err != nil {
		return err
	}
	return s.rdb.Close()
}

var statusLine = regexp.MustCompile(`(?m)^\s+\[(\d+)\]\s+(\d+) responses`)

// load has a load tool make requests as fast as it can, and counts the answers by
// status.
func load(t *testing.T, addr string, d time.Duration) (map[int]int, error) {
	tool, err := filepath.Abs("../../.bin/hey")
	if err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(t.Context(), tool, "-z", d.String(), "-c", "8", "-q", "200", "http://"+addr+"/").CombinedOutput()
	if err != nil {
		t.Logf("%s (hey is built by: make tools)", out)
		return nil, err
	}
	count := map[int]int{}
	for _, m := range statusLine.FindAllStringSubmatch(string(out), -1) {
		status, _ := strconv.Atoi(m[1])
		n, _ := strconv.Atoi(m[2])
		count[status] += n
	}
	return count, nil
}

// TestTwoServersUnderALoadToolKeepOneLimit: two processes serve HTTP behind the
// middleware, a load tool overloads both, and all that got through is what one
// bucket would have let through; all else is a 429.
func TestTwoServersUnderALoadToolKeepOneLimit(t *testing.T) {
	const rate, burst = 200, 100
	r := redistest.Server(t)
	d := time.Duration(normally(3, 30)) * time.Second
	var addrs []string
	var sites []*process
	for range 2 {
		p := startProcess(t)
		var addr string
		if err := p.line.Call("Site.Open", Setup{Addr: r.Addr(), Name: "web", Limit: "200/s burst 100", Timeout: 400 * time.Millisecond}, &addr); err != nil {
			t.Fatal(err)
		}
		sites, addrs = append(sites, p), append(addrs, addr)
	}
	begun := time.Now()
	var (
		all    sync.WaitGroup
		mu     sync.Mutex
		passed int
		other  int
	)
	for _, addr := range addrs {
		all.Go(func() {
			count, err := load(t, addr, d)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			passed += count[http.StatusOK]
			other += count[http.StatusTooManyRequests]
			for status, n := range count {
				if status != http.StatusOK && status != http.StatusTooManyRequests {
					t.Errorf("%d answers with status %d", n, status)
				}
			}
		})
	}
	all.Wait()
	took := time.Since(begun)
	checkRefusal(t, addrs[0])
	decided := uint64(0)
	for _, p := range sites {
		var n uint64
		if err := p.line.Call("Site.Close", Nothing{}, &n); err != nil {
			t.Error(err)
		}
		decided += n
	}
	// In an outage, each of two parts has half of both: on a busy machine one may
	// begin, and adds a burst and what the rate is worth in a lease.
	most := burst + rate*took.Seconds()
	if decided > 0 {
		t.Logf("%d requests were decided by the outage policy", decided)
		most += burst + rate
	}
	t.Logf("%d passed and %d were refused in %v; at most %.0f may pass", passed, other, took, most)
	if float64(passed) > most {
		t.Errorf("%d requests passed in %v, want at most %.0f", passed, took, most)
	}
	if passed < burst || other == 0 {
		t.Errorf("%d passed and %d were refused: that is no overload of a limit of %d/s", passed, other, rate)
	}
}

// checkRefusal asks until it is refused, and looks at the answer.
func checkRefusal(t *testing.T, addr string) {
	t.Helper()
	eventually(t, "a refusal", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 400 {
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusTooManyRequests {
				continue
			}
			if after, err := strconv.Atoi(resp.Header.Get("Retry-After")); err != nil || after < 1 {
				t.Errorf("Retry-After: %q", resp.Header.Get("Retry-After"))
			}
			if resp.Header.Get("RateLimit") == "" || resp.Header.Get("RateLimit-Policy") == "" {
				t.Errorf("headers: %v", resp.Header)
			}
			return true
		}
		return false
	})
	http.DefaultClient.CloseIdleConnections()
}
