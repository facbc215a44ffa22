package hybrid_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// script is a limiter that gives the same answers in turn, the last for ever.
type script struct {
	list  []hybrid.Result
	err   error
	asked []time.Time
}

func (a *script) Take(context.Context, hybrid.Request) (hybrid.Result, error) {
	a.asked = append(a.asked, time.Now())
	return a.list[min(len(a.asked), len(a.list))-1], a.err
}

var (
	pass  = hybrid.Result{Allowed: true}
	again = hybrid.Result{RetryAfter: time.Second, Limit: hybrid.PerSecond(1)}
)

func TestDoRunsWhatIsAdmitted(t *testing.T) {
	errOwn, errTake := errors.New("own"), errors.New("take")
	ran := 0
	fn := func(context.Context) (int, error) { ran++; return 7, errOwn }
	request := hybrid.Request{Key: "k", N: 2}

	got, err := hybrid.Do(t.Context(), &script{list: []hybrid.Result{pass}}, request, fn)
	want(t, "value", got, 7)
	want(t, "error", err, errOwn)
	want(t, "runs", ran, 1)

	got, err = hybrid.Do(t.Context(), &script{list: []hybrid.Result{again}}, request, fn)
	limited := new(hybrid.LimitedError)
	if !errors.As(err, &limited) || !errors.Is(err, hybrid.ErrLimited) || limited.Key != "k" || limited.Result != again {
		t.Errorf("%v", err)
	}
	want(t, "text", err.Error(), "hybrid: rate limit of 1/s exceeded, retry after 1s")
	want(t, "value", got, 0)

	_, err = hybrid.Do(t.Context(), &script{list: []hybrid.Result{{}}, err: errTake}, request, fn)
	want(t, "error of the limiter", err, errTake)
	want(t, "runs", ran, 1)
}

// exactly is a back-off of that much.
func exactly(t *testing.T, d time.Duration) hybrid.Backoff { return backoff(t, d, d, hybrid.NoJitter) }

func TestRetryComesWhenItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := &script{list: []hybrid.Result{again, again, pass}}
		begun := time.Now()
		got, err := hybrid.Retry(t.Context(), lim, hybrid.Request{Key: "k", N: 1}, hybrid.Retries{Backoff: backoff(t, 10*time.Millisecond, time.Second, hybrid.NoJitter)},
			func(context.Context) (string, error) { return "done", nil })
		want(t, "value", got, "done")
		want(t, "error", err, nil)
		want(t, "asked first", lim.asked[0].Sub(begun), 0)
		want(t, "asked again", lim.asked[1].Sub(begun), 1010*time.Millisecond)
		want(t, "and again", lim.asked[2].Sub(begun), 2030*time.Millisecond)
	})
}

func TestRetryEnds(t *testing.T) {
	errOwn := errors.New("own")
	for name, c := range map[string]struct {
		retries  hybrid.Retries
		deadline time.Duration // of the context
		cancel   time.Duration // it is cancelled then
		fn       error         // what the function returns, if it is admitted at all
		asked    int
		took     time.Duration
		want     error
	}{
		"after so many attempts":                         {retries: hybrid.Retries{Attempts: 3}, asked: 3, took: 2020 * time.Millisecond, want: hybrid.ErrLimited},
		"where the next one would be too late":           {deadline: 3 * time.Second, asked: 3, took: 2020 * time.Millisecond, want: hybrid.ErrLimited},
		"with the context":                               {cancel: 1500 * time.Millisecond, asked: 2, took: 1500 * time.Millisecond, want: context.Canceled},
		"with the function's error":                      {fn: errOwn, asked: 1, want: errOwn},
		"with the function's error after all attempts":   {fn: errOwn, retries: hybrid.Retries{Attempts: 4, Again: func(err error) bool { return err == errOwn }}, asked: 4, took: 30 * time.Millisecond, want: errOwn},
		"with a function's error that is not worth more": {fn: errOwn, retries: hybrid.Retries{Attempts: 4, Again: func(error) bool { return false }}, asked: 1, want: errOwn},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lim := &script{list: []hybrid.Result{again}}
				if c.fn != nil {
					lim.list[0] = pass
					t.Cleanup(func() { lim.list[0] = again })
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.deadline > 0 {
					ctx, cancel = context.WithTimeout(ctx, c.deadline)
					defer cancel()
				}
				if c.cancel > 0 {
					time.AfterFunc(c.cancel, cancel)
				}
				c.retries.Backoff = exactly(t, 10*time.Millisecond)
				begun := time.Now()
				_, err := hybrid.Retry(ctx, lim, hybrid.Request{Key: "k", N: 1}, c.retries,
					func(context.Context) (int, error) { return 0, c.fn })
				if !errors.Is(err, c.want) {
					t.Errorf("%v, want %v", err, c.want)
				}
				want(t, "asked", len(lim.asked), c.asked)
				want(t, "took", time.Since(begun), c.took)
			})
		})
	}
}

// TestRetriesUseTheLimit: two hundred clients who come again as they are told use
// nearly all of it, and each gets its turn.
func TestRetriesUseTheLimit(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerSecond(20))
		drain(t, lim, "k")
		begun := time.Now()
		var all sync.WaitGroup
		for range 200 {
			all.Go(func() {
				_, err := hybrid.Retry(t.Context(), lim, hybrid.Request{Key: "k", N: 1}, hybrid.Retries{},
					func(context.Context) (struct{}, error) { return struct{}{}, nil })
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		// The limit allows for 10 s at least. The last few are on a long pause when
		// there is room for them.
		if took := time.Since(begun); took < 10*time.Second || took > 20*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}
