package load

import (
	"sync"
	"sync/atomic"
	"time"
)

// Closed is a load of goroutines that ask again as soon as they have an answer.
type Closed struct {
	Goroutines int
	Duration   time.Duration
	// Keys are the sequences that the goroutines ask for in turn, at least one, each
	// with a length that is a power of two. A goroutine takes that of its number.
	Keys [][]string
	// TimeOneIn says which part of the calls is timed: reading the clock twice would
	// be most of a decision that takes some nanoseconds. 1 times all.
	TimeOneIn int
	// Ask decides.
	Ask func(key string) (bool, error)
}

// Outcome is what a load has seen.
type Outcome struct {
	Decisions, Admitted, Errors int
	Elapsed                     time.Duration
	Latency                     Hist
}

// Run does it.
func (c Closed) Run() Outcome {
	var (
		stop   atomic.Bool
		parts  = make([]Outcome, c.Goroutines)
		ready  sync.WaitGroup
		done   sync.WaitGroup
		signal = make(chan struct{})
	)
	for i := range parts {
		ready.Add(1)
		done.Go(func() {
			part := Outcome{} // its own memory while it runs
			ready.Done()
			<-signal
			c.worker(&stop, c.Keys[i%len(c.Keys)], &part)
			parts[i] = part
		})
	}
	ready.Wait()
	begun := time.Now()
	close(signal)
	time.Sleep(c.Duration)
	stop.Store(true)
	done.Wait()
	all := Outcome{Elapsed: time.Since(begun)}
	for i := range parts {
		all.add(&parts[i])
	}
	return all
}

func (c Closed) worker(stop *atomic.Bool, keys []string, out *Outcome) {
	every, mask := max(c.TimeOneIn, 1), len(keys)-1
	for n := 0; !stop.Load(); {
		for range every - 1 {
			ok, err := c.Ask(keys[n&mask])
			out.count(ok, err)
			n++
		}
		begun := time.Now()
		ok, err := c.Ask(keys[n&mask])
		out.Latency.Add(time.Since(begun))
		out.count(ok, err)
		n++
	}
}

func (o *Outcome) count(ok bool, err error) {
	o.Decisions++
	switch {
	case err != nil:
		o.Errors++
	case ok:
		o.Admitted++
	}
}

func (o *Outcome) add(p *Outcome) {
	o.Decisions += p.Decisions
	o.Admitted += p.Admitted
	o.Errors += p.Errors
	o.Latency.Merge(&p.Latency)
}
