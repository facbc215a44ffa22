package peers

import (
	"fmt"
	"testing"
	"time"

	"github.com/resilient-go/limiter/bench/server"
)

// Two instances of each limiter, asked in turns for more than the limit, admit what
// the limit says, and another key has a limit of its own.
func TestPeersKeepTheLimit(t *testing.T) {
	s, err := server.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	const burst = 100
	for i, p := range All() {
		if p.Name == uber.Name {
			continue // see below
		}
		t.Run(p.Name, func(t *testing.T) {
			setup := Setup{Addr: s.Addr, Name: fmt.Sprintf("t%d:", i), Rate: burst, Burst: burst, Period: time.Hour, Instances: 2}
			fleet := []Limiter{open(t, p, setup), open(t, p, setup)}
			begun, admitted := time.Now(), 0
			for i := range 2 * burst {
				ok, err := fleet[i%2].Allow(t.Context(), "hot")
				if err != nil {
					t.Fatal(err)
				}
				if ok {
					admitted++
				}
			}
			// One of them knows nothing slower than one per second.
			most := burst + 2 + int(time.Since(begun).Seconds())
			if admitted < burst-2 || admitted > most {
				t.Errorf("admitted %d of %d under a limit of %d", admitted, 2*burst, burst)
			}
			if p.Name == oursKey.Name {
				return // one key
			}
			if ok, err := fleet[0].Allow(t.Context(), "other"); !ok || err != nil {
				t.Errorf("another key: %t, %v", ok, err)
			}
		})
	}
}

// The one that blocks admits all, but not at once.
func TestBlockingPeerWaits(t *testing.T) {
	lim := open(t, uber, Setup{Rate: 100, Burst: 1, Period: time.Second, Instances: 1})
	begun := time.Now()
	for range 11 {
		if ok, err := lim.Allow(t.Context(), "hot"); !ok || err != nil {
			t.Fatalf("%t, %v", ok, err)
		}
	}
	if took := time.Since(begun); took < 90*time.Millisecond {
		t.Errorf("11 at 100 per second took %v", took)
	}
}

func TestPeersAreDescribed(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range All() {
		if p.Name == "" || p.Module == "" || p.Way == "" || p.Counts == "" || seen[p.Name] {
			t.Errorf("%q lacks something, or is there twice: %+v", p.Name, p)
		}
		seen[p.Name] = true
		if (p.Client == "") != (p.Way == Local) {
			t.Errorf("%s decides %s with the client %q", p.Name, p.Way, p.Client)
		}
		for letter, why := range p.Out {
			if why == "" {
				t.Errorf("%s has no reason to be out of %s", p.Name, letter)
			}
		}
	}
}

func open(t *testing.T, p Peer, s Setup) Limiter {
	t.Helper()
	lim, err := p.Open(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lim.Close(); err != nil {
			t.Error(err)
		}
	})
	return lim
}
