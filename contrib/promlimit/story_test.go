package promlimit_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// scrapes is how often the story is scraped, at equal distances.
const (
	scrapes     = 24
	scrapeEvery = 15 * time.Second
)

// secret is part of each key of the story, which nobody must see.
const secret = "user-4711"

var (
	toldOnce sync.Once
	told     [][]*dto.MetricFamily
)

// story returns what Prometheus sees of a limiter "api" that meets everything that
// is counted: load on hot and cold keys, callers who wait, more keys than it
// remembers, an outage, a lost answer, a key that holds something else, and a
// handler that is slow and panics. It is closed before the last scrape.
func story(t *testing.T) [][]*dto.MetricFamily {
	t.Helper()
	toldOnce.Do(func() {
		synctest.Test(t, func(t *testing.T) { told = tell(t) })
	})
	if len(told) != scrapes {
		t.Fatal("the story has failed in another test")
	}
	return told
}

func tell(t *testing.T) (seen [][]*dto.MetricFamily) {
	r := redistest.Bubble(t)
	r.Delay(2 * time.Millisecond)
	slow := make(chan struct{}, 1) // full: the handler waits
	lim := start(t, r, hybrid.PerSecond(20), hybrid.WithName("api"), hybrid.WithExpectedInstances(4),
		hybrid.WithMaxKeys(100), hybrid.WithEvents(func(e hybrid.Event) {
			slow <- struct{}{}
			<-slow
			if _, ok := e.(hybrid.Recovered); ok {
				panic("a handler with a fault")
			}
		}))
	reg := registry(t, lim)
	ask := func(n int, key ...any) {
		if _, err := lim.AllowN(t.Context(), secret+fmt.Sprint(key...), n); err != nil {
			t.Error(err)
		}
	}
	load := func(requests int) {
		for i := range requests {
			switch {
			case i%10 == 0:
				ask(i%3, len(seen), i)
			case i%10 == 5:
				ask(i%3, "cold")
			default:
				ask(i%3, "hot")
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	waiters, leave := context.WithCancel(t.Context())
	defer leave()
	var gone sync.WaitGroup
	for begun := time.Now(); len(seen) < scrapes; begun = time.Now() {
		step := len(seen)
		switch step {
		case 3: // more than can be charged
			booked, err := lim.Reserve(t.Context(), hybrid.Request{Key: secret + "model", N: 10})
			if err == nil {
				err = booked.Settle(1000)
			}
			if err != nil {
				t.Error(err)
			}
		case 6: // an outage, in the middle of leases
			load(60)
			r.Kill()
		case 7: // more keys than it remembers, and none that it may forget
			for i := range 150 {
				ask(5, "not forgotten", i)
			}
		case 10:
			r.RestartEmpty()
		case 13:
			r.DropReplies(3) // some may be those of announcements
		case 14:
			r.FailNext(1, "WRONGTYPE Operation against a key holding the wrong kind of value")
		case 16: // many keys that are near their limits, and nobody takes the events
			slow <- struct{}{}
			for i := range 300 {
				ask(20, "used up", i)
			}
		case 18:
			<-slow
		case 20:
			gone.Go(func() {
				for err := error(nil); err == nil; {
					_, err = lim.Wait(waiters, secret+"waiting")
				}
			})
			if err := lim.Reset(t.Context(), secret+"cold"); err != nil {
				t.Error(err)
			}
		case scrapes - 1:
			leave()
			gone.Wait()
			_ = lim.Close()
		}
		if step != 6 && step < scrapes-1 {
			load(120)
		}
		time.Sleep(scrapeEvery - time.Since(begun))
		synctest.Wait()
		seen = append(seen, gather(t, reg))
	}
	return seen
}
