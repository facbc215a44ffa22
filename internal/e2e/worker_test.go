package e2e

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/rpc"
	"os"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/remote"
)

// workerEnv is set in the environment of a worker.
const workerEnv = "LIMITER_E2E_WORKER"

// serve answers the orders of the parent until it hangs up, or dies.
func serve() {
	s := rpc.NewServer()
	if err := s.Register(&Worker{limiters: map[string]limiter{}}); err != nil {
		panic(err)
	}
	if err := s.Register(&Site{}); err != nil {
		panic(err)
	}
	if err := s.Register(&Stormer{}); err != nil {
		panic(err)
	}
	s.ServeConn(stdio{os.Stdin, os.Stdout})
}

type stdio struct {
	io.Reader
	io.WriteCloser
}

// A Worker holds instances of limiters and makes requests, on order.
type Worker struct {
	mu       sync.Mutex // guards what follows
	limiters map[string]limiter
}

type limiter interface {
	take(key string, n int) (hybrid.Result, error)
	end() error
}

// Nothing is an order or answer without content.
type Nothing struct{}

// Setup is the order to make a limiter.
type Setup struct {
	ID      string
	Addr    string // of Redis; none: per process, on x/time/rate alone
	Name    string
	Limit   string
	Share   float64 // 0: the default
	Horizon time.Duration
	Timeout time.Duration
}

// Clock answers with the worker's clock.
func (w *Worker) Clock(_ Nothing, now *int64) error {
	*now = stamp()
	return nil
}

// Open makes a limiter.
func (w *Worker) Open(s Setup, _ *Nothing) error {
	l, err := newLimiter(s)
	if err == nil {
		w.mu.Lock()
		w.limiters[s.ID] = l
		w.mu.Unlock()
	}
	return err
}

// Close ends a limiter.
func (w *Worker) Close(id string, _ *Nothing) error {
	w.mu.Lock()
	l := w.limiters[id]
	delete(w.limiters, id)
	w.mu.Unlock()
	return l.end()
}

func (w *Worker) limiter(id string) (limiter, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l, ok := w.limiters[id]; ok {
		return l, nil
	}
	return nil, errors.New("no limiter " + id)
}

// BurstOrder is the order to make Count requests for each of the keys: all
// together at an instant, or evenly spread around it.
type BurstOrder struct {
	ID     string
	Keys   []string
	Count  int
	At     int64
	Spread time.Duration
}

// Burst makes the requests of an order.
func (w *Worker) Burst(o BurstOrder, calls *[]Call) error {
	l, err := w.limiter(o.ID)
	if err != nil {
		return err
	}
	var (
		all  = make([]Call, len(o.Keys)*o.Count)
		errs = make([]error, len(all))
		work sync.WaitGroup
	)
	for i := range all {
		at := o.At + int64(o.Spread)*int64(2*(i/len(o.Keys))+1-o.Count)/int64(2*o.Count)
		work.Go(func() {
			<-until(at)
			all[i], errs[i] = call(l, o.Keys[i%len(o.Keys)], 1)
		})
	}
	work.Wait()
	*calls = all
	return errors.Join(errs...)
}

// LoadOrder is the order to make requests from one instant to another.
type LoadOrder struct {
	ID       string
	Key      string
	From, To int64
	Callers  int
	Pause    time.Duration // of a caller between two requests, on average
	Most     int           // a request is for 1 to Most tokens
	Pulse    time.Duration // requests come in every other interval of this length; 0: always
	Seed     uint64
}

// Load makes the requests of an order.
func (w *Worker) Load(o LoadOrder, calls *[]Call) error {
	l, err := w.limiter(o.ID)
	if err != nil {
		return err
	}
	var (
		all  = make([][]Call, o.Callers)
		errs = make([]error, o.Callers)
		work sync.WaitGroup
	)
	for i := range o.Callers {
		work.Go(func() { all[i], errs[i] = o.caller(l, rand.New(rand.NewPCG(o.Seed, uint64(i)))) })
	}
	work.Wait()
	for _, c := range all {
		*calls = append(*calls, c...)
	}
	return errors.Join(errs...)
}

func (o LoadOrder) caller(l limiter, rnd *rand.Rand) (calls []Call, err error) {
	next := o.From
	for {
		next += int64(float64(o.Pause) * rnd.ExpFloat64())
		if o.Pulse > 0 && (next-o.From)/int64(o.Pulse)%2 == 1 {
			next += int64(o.Pulse)
			continue
		}
		if next >= o.To {
			return calls, nil
		}
		<-until(next)
		c, err := call(l, o.Key, 1+rnd.IntN(o.Most))
		if err != nil {
			return calls, err
		}
		calls = append(calls, c)
		next = max(next, c.End-int64(10*o.Pause)) // who is late does not catch up for ever
	}
}

func call(l limiter, key string, n int) (Call, error) {
	c := Call{Start: stamp(), Key: key, N: n}
	res, err := l.take(key, n)
	c.End, c.Allowed, c.Source = stamp(), res.Allowed, res.Source
	return c, err
}

// shared is a limiter of all processes, perProcess one that each has alone.
type (
	shared struct {
		rdb redis.UniversalClient
		lim *hybrid.Limiter
	}
	perProcess struct {
		limit hybrid.Limit
		mu    sync.Mutex // guards keys
		keys  map[string]*rate.Limiter
	}
)

func newLimiter(s Setup) (limiter, error) {
	limit, err := hybrid.ParseLimit(s.Limit)
	if err != nil {
		return nil, err
	}
	if s.Addr == "" {
		return &perProcess{limit: limit, keys: map[string]*rate.Limiter{}}, nil
	}
	rdb := redis.NewUniversalClient(remote.Options(s.Timeout, s.Addr))
	options := []hybrid.Option{
		hybrid.WithName(s.Name), hybrid.WithRemoteTimeout(s.Timeout), hybrid.WithLeaseHorizon(s.Horizon), quiet,
	}
	if s.Share > 0 {
		options = append(options, hybrid.WithLocalShare(s.Share))
	}
	lim, err := hybrid.New(rdb, limit, options...)
	return &shared{rdb, lim}, err
}

func (s *shared) take(key string, n int) (hybrid.Result, error) {
	return s.lim.AllowN(context.Background(), key, n)
}

func (s *shared) end() error {
	defer s.rdb.Close()
	return s.lim.Close()
}

func (p *perProcess) take(key string, n int) (hybrid.Result, error) {
	p.mu.Lock()
	l, ok := p.keys[key]
	if !ok {
		perSecond := float64(p.limit.Count()) / p.limit.Period().Seconds()
		l = rate.NewLimiter(rate.Limit(perSecond), p.limit.Burst())
		p.keys[key] = l
	}
	p.mu.Unlock()
	return hybrid.Result{Allowed: l.AllowN(time.Now(), n)}, nil
}

func (p *perProcess) end() error { return nil }
