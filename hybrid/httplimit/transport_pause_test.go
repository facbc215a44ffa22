package httplimit_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/hybrid/httplimit"
	"github.com/resilient-go/limiter/internal/redistest"
)

func TestTransportHonoursThePauseOfTheRemoteSide(t *testing.T) {
	for name, c := range map[string]struct {
		first func() *http.Response
		pause time.Duration
	}{
		"429, seconds":                 {status(429, "Retry-After", "7"), 7 * time.Second},
		"503, seconds":                 {status(503, "Retry-After", "7"), 7 * time.Second},
		"429, a date":                  {status(429, "Retry-After", "Sat, 01 Jan 2000 00:00:09 GMT"), 9 * time.Second},
		"a used-up quota":              {status(200, "RateLimit", `"a";r=5;t=60, "b";r=0;t=4`), 4 * time.Second},
		"429, nothing said":            {status(429), 0},
		"200 with Retry-After":         {status(200, "Retry-After", "7"), 0},
		"asked for more than can be":   {status(429, "Retry-After", "31536000"), httplimit.DefaultMaxPause},
		"Retry-After before RateLimit": {status(429, "Retry-After", "2", "RateLimit", `"a";r=0;t=60`), 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				far := answers(c.first, status(200))
				tr := transport(t, &fake{}, far)
				begun := time.Now()
				if _, err := trip(t, t.Context(), tr, url); err != nil {
					t.Fatal(err)
				}
				var all sync.WaitGroup
				for range 3 {
					all.Go(func() {
						if _, err := trip(t, t.Context(), tr, url); err != nil {
							t.Error(err)
						}
					})
				}
				if code, err := trip(t, t.Context(), tr, "https://other.example"); code != 200 {
					t.Errorf("another host: %d, %v", code, err)
				}
				want(t, "time for another host", time.Since(begun), 0)
				all.Wait()
				want(t, "time", time.Since(begun), c.pause)
				want(t, "keys in mind", tr.Paused(), 0)
			})
		})
	}
}

// The longest pause counts, in whatever order the answers come.
func TestPausesAreNotMadeShorter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var under sync.WaitGroup
		under.Add(2)
		far := &remote{answer: func(n int, _ *http.Request) (*http.Response, error) {
			if n < 2 { // both are sent before either is answered
				under.Done()
				under.Wait()
			}
			return []func() *http.Response{status(429, "Retry-After", "10"), status(429, "Retry-After", "1"), status(200)}[n](), nil
		}}
		tr := transport(t, &fake{}, far)
		begun := time.Now()
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				if _, err := trip(t, t.Context(), tr, url); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if _, err := trip(t, t.Context(), tr, url); err != nil {
			t.Error(err)
		}
		want(t, "time", time.Since(begun), 10*time.Second)
	})
}

// Who waited for the limiter while a pause began waits for the pause as well, and
// then asks for a permit again: they must not leave all at once.
func TestPauseThatBeginsWhileOthersWait(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(1).WithBurst(1))
		far := answers(status(429, "Retry-After", "60"), status(200))
		tr := transport(t, lim, far)
		begun := time.Now()
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if _, err := trip(t, t.Context(), tr, url); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		at := far.at(begun)
		want(t, "requests", len(at), 5)
		want(t, "the first", at[0], 0)
		for i := 1; i < len(at); i++ {
			earliest := time.Minute + time.Duration(i-1)*time.Second - 10*time.Millisecond
			if at[i] < earliest {
				t.Errorf("request %d was sent after %v, want at least %v", i, at[i], earliest)
			}
		}
	})
}

func TestPauseAndFailFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := says(hybrid.Result{Allowed: true}, nil)
		tr := transport(t, lim, answers(status(429, "Retry-After", "7"), status(200)), httplimit.WithFailFast())
		if code, err := trip(t, t.Context(), tr, url); code != 429 {
			t.Fatal(code, err)
		}
		time.Sleep(2 * time.Second)
		_, err := trip(t, t.Context(), tr, url)
		var limited *httplimit.LimitedError
		if !errors.As(err, &limited) {
			t.Fatalf("the error is %v", err)
		}
		want(t, "error", *limited, httplimit.LimitedError{Key: "api.example", RetryAfter: 5 * time.Second, Remote: true})
		want(t, "text", limited.Error(), "httplimit: api.example: the remote side asked for a pause; try again in 5s")
		want(t, "asked of the limiter", len(lim.requests()), 1)
		time.Sleep(5 * time.Second)
		if code, err := trip(t, t.Context(), tr, url); code != 200 {
			t.Error(code, err)
		}
	})
}

// A pause that is longer than a request has time is told at once; one that is
// broken off ends with the context's error.
func TestPauseAndContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := answers(status(429, "Retry-After", "60"), status(200))
		tr := transport(t, &fake{}, far)
		if _, err := trip(t, t.Context(), tr, url); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := trip(t, short, tr, url)
		if !errors.Is(err, hybrid.ErrWouldExceedDeadline) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
		want(t, "time", time.Since(begun), 0)

		leaving, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, leave)
		_, err = trip(t, leaving, tr, url)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the error is %v", err)
		}
		want(t, "time", time.Since(begun), time.Second)

		_, err = trip(t, leaving, tr, url)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the error is %v", err)
		}

		enough, cancelEnough := context.WithTimeout(t.Context(), 59*time.Second+1)
		defer cancelEnough()
		if code, err := trip(t, enough, tr, url); code != 200 {
			t.Error(code, err)
		}
		want(t, "requests", len(far.at(begun)), 2)
	})
}

// A remote side cannot make the transport remember ever more.
func TestPausesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 16
		far := &remote{answer: func(n int, _ *http.Request) (*http.Response, error) {
			return response(429, "Retry-After", fmt.Sprint(100+n)), nil
		}}
		tr := transport(t, says(hybrid.Result{Allowed: true}, nil), far, httplimit.WithMaxPauses(most), httplimit.WithFailFast())
		host := func(i int) string { return fmt.Sprintf("https://h%d.example", i) }
		for i := range 10 * most {
			if code, err := trip(t, t.Context(), tr, host(i)); code != 429 {
				t.Fatal(code, err)
			}
			if n := tr.Paused(); n > most {
				t.Fatalf("%d pauses are kept, want at most %d", n, most)
			}
		}
		// Those that end last are kept.
		for i := 9 * most; i < 10*most; i++ {
			if _, err := trip(t, t.Context(), tr, host(i)); err == nil {
				t.Errorf("the pause of %s is forgotten", host(i))
			}
		}
		want(t, "kept", tr.Paused(), most)
		// And all that are over go when room is needed.
		time.Sleep(time.Hour)
		if code, err := trip(t, t.Context(), tr, "https://new.example"); code != 429 {
			t.Fatal(code, err)
		}
		want(t, "kept after an hour", tr.Paused(), 1)
	})
}
