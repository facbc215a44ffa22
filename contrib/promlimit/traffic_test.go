package promlimit_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// TestScrapesDuringTraffic of two limiters from several goroutines: nothing is
// counted twice or lost, and what is read while it grows never falls.
func TestScrapesDuringTraffic(t *testing.T) {
	const workers, requests = 4, 2000
	r := redistest.MiniTCP(t)
	api := start(t, r, hybrid.PerHour(100_000), hybrid.WithName("api"), hybrid.WithRemoteTimeout(200*time.Millisecond))
	login := start(t, r, hybrid.PerHour(10), hybrid.WithName("login"), hybrid.WithRemoteTimeout(200*time.Millisecond))
	reg := registry(t, api, login)

	done := make(chan struct{})
	var scraping, working sync.WaitGroup
	for range 2 {
		scraping.Go(func() {
			for before := 0.0; ; {
				select {
				case <-done:
					return
				default:
				}
				families, err := reg.Gather()
				if err != nil {
					t.Error(err)
					return
				}
				now := 0.0
				for _, f := range families {
					if f.GetName() == "resilient_limiter_decisions_total" {
						for _, m := range f.GetMetric() {
							now += m.GetCounter().GetValue()
						}
					}
				}
				if now < before {
					t.Errorf("the decisions fell from %v to %v", before, now)
				}
				before = now
			}
		})
	}
	for w := range workers {
		working.Go(func() {
			for i := range requests {
				lim := api
				if i%10 == 0 {
					lim = login
				}
				if _, err := lim.Allow(t.Context(), fmt.Sprint((w+i)%8)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	working.Wait()
	close(done)
	scraping.Wait()

	sums := map[string]float64{}
	for _, f := range gather(t, reg) {
		if f.GetName() == "resilient_limiter_decisions_total" {
			for _, m := range f.GetMetric() {
				sums[label(m, "limiter")] += m.GetCounter().GetValue()
			}
		}
	}
	want(t, "decisions of api", sums["api"], workers*requests*9/10)
	want(t, "decisions of login", sums["login"], workers*requests/10)
}

// TestAClosedLimiterKeepsItsNumbers for those who scrape while a service ends.
func TestAClosedLimiterKeepsItsNumbers(t *testing.T) {
	lim := start(t, redistest.MiniTCP(t), hybrid.PerHour(2), hybrid.WithName("api"))
	for range 3 {
		if _, err := lim.Allow(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
	}
	reg := registry(t, lim)
	decided := func() string {
		var b strings.Builder
		for line := range strings.Lines(text(t, reg)) {
			if strings.HasPrefix(line, "resilient_limiter_decisions_total") {
				b.WriteString(line)
			}
		}
		return b.String()
	}
	before := decided()
	if !strings.Contains(before, `outcome="refused"`) || strings.Count(before, "\n") != 12 {
		t.Errorf("decisions:\n%s", before)
	}
	_ = lim.Close() // what it left behind is the matter of other tests
	want(t, "decisions after Close", decided(), before)
	want(t, "waiting after Close", samples(t, reg)[series("waiting")], "0")
}
