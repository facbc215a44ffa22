package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/remote"
)

// A Front is one limiter of a storm, which every worker has, and the load on it.
type Front struct {
	Limit   string
	Keys    int
	Most    int // a request is for 1 to Most tokens
	Horizon time.Duration
}

// StormOrder is the order to work, unasked from then on, until Calm.
type StormOrder struct {
	Addr     string
	Fronts   []Front
	Timeout  time.Duration
	Slot     int
	Seed     uint64 // the same for the fleet
	Begun    int64
	StoryOf  string // the path of the book, without its ends
	Lifetime int    // how many lived in the slot before
}

// A StormAnswer is what a worker tells at the end of a front.
type StormAnswer struct {
	Stats hybrid.Stats
	Left  int64  // tokens that Close could not give back
	Error string // of Close, if it is another one
}

// A Stormer is a worker in a storm.
type Stormer struct {
	order    StormOrder
	book     *storyBook
	rdb      redis.UniversalClient
	limits   []hybrid.Limit
	limiters []*hybrid.Limiter
	life     context.Context
	calm     context.CancelFunc
	work     sync.WaitGroup
}

// Storm makes the limiters and starts the load.
func (s *Stormer) Storm(o StormOrder, _ *Nothing) (err error) {
	s.order = o
	if s.book, err = newStoryBook(o.StoryOf); err != nil {
		return err
	}
	s.life, s.calm = context.WithCancel(context.Background())
	s.rdb = redis.NewUniversalClient(remote.Options(o.Timeout, o.Addr))
	for i, f := range o.Fronts {
		limit, err := hybrid.ParseLimit(f.Limit)
		if err != nil {
			return err
		}
		lim, err := hybrid.New(s.rdb, limit, quiet, hybrid.WithName(fmt.Sprint("front", i)),
			hybrid.WithLeaseHorizon(f.Horizon), hybrid.WithRemoteTimeout(o.Timeout),
			hybrid.WithExpectedInstances(slots))
		if err != nil {
			return err
		}
		s.limits, s.limiters = append(s.limits, limit), append(s.limiters, lim)
	}
	const callersPerKey = 2
	for i, f := range o.Fronts {
		for k := range f.Keys {
			for c := range callersPerKey {
				rnd := rand.New(rand.NewPCG(o.Seed, uint64(((o.Lifetime*slots+o.Slot)*16+i)*16+k*callersPerKey+c)))
				s.work.Go(func() { s.caller(i, k, callersPerKey, rnd) })
			}
		}
	}
	return nil
}

// request makes one request, one in eight of them patiently, and writes down what
// became of it.
func (s *Stormer) request(front, key int, name string, n int, rnd *rand.Rand) {
	r := record{N: int32(n), Front: uint8(front), Key: uint8(key)}
	lim := s.limiters[front]
	var (
		res hybrid.Result
		err error
	)
	if rnd.IntN(8) > 0 {
		r.Start = stamp()
		res, err = lim.AllowN(context.Background(), name, n)
		r.End = stamp()
	} else {
		ctx, cancel := context.WithTimeout(s.life, time.Duration(10+rnd.IntN(300))*time.Millisecond)
		r.Start = stamp()
		res, err = lim.WaitN(ctx, name, n)
		r.End = stamp()
		cancel()
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			return // it had no patience any more
		}
	}
	if err != nil {
		s.book.fault(fmt.Errorf("front %d, %s, %d tokens: %w", front, name, n, err))
		return
	}
	r.Allowed, r.Source = res.Allowed, res.Source
	s.book.decision(r)
}

// Breakers answers with the states of the breakers.
func (s *Stormer) Breakers(_ Nothing, states *[]string) error {
	for _, lim := range s.limiters {
		*states = append(*states, lim.Stats().Breaker)
	}
	return nil
}

// Calm ends the load and the limiters.
func (s *Stormer) Calm(_ Nothing, answers *[]StormAnswer) error {
	s.calm()
	s.work.Wait()
	for _, lim := range s.limiters {
		var (
			a    StormAnswer
			left *hybrid.CloseError
		)
		if err := lim.Close(); errors.As(err, &left) {
			a.Left = left.Tokens
		} else if err != nil {
			a.Error = err.Error()
		}
		a.Stats = lim.Stats()
		*answers = append(*answers, a)
	}
	return s.rdb.Close()
}
