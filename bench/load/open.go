package load

import (
	"sync"
	"time"
)

// Open is a load that comes at fixed times, whether earlier calls have been answered
// or not, as from the outside world. Each call has a goroutine.
type Open struct {
	// Rates are the calls per second on each instance.
	Rates    []float64
	Duration time.Duration
	// Ask decides on an instance.
	Ask func(instance int) (bool, error)
}

// A Call is one of an open load. Times are since its start.
type Call struct {
	Instance    int
	Begun, Done time.Duration
	Admitted    bool
	Err         error
}

// Run does it from the given start on, and returns the calls in the order in which
// they were answered. It waits for all of them.
func (o Open) Run(start time.Time) []Call {
	var (
		mu    sync.Mutex
		calls []Call
		out   sync.WaitGroup
		sent  = make([]int, len(o.Rates))
	)
	ask := func(instance int) {
		c := Call{Instance: instance, Begun: time.Since(start)}
		c.Admitted, c.Err = o.Ask(instance)
		c.Done = time.Since(start)
		c.Admitted = c.Admitted && c.Err == nil
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, c)
	}
	time.Sleep(time.Until(start))
	for over := false; !over; {
		now := time.Since(start)
		if over = now >= o.Duration; over {
			now = o.Duration // the last ones are sent, if late
		}
		for i, rate := range o.Rates {
			// The instances take turns.
			due := int(rate*now.Seconds() + float64(i)/float64(len(o.Rates)))
			for ; sent[i] < due; sent[i]++ {
				out.Go(func() { ask(i) })
			}
		}
		if !over {
			time.Sleep(time.Millisecond)
		}
	}
	out.Wait()
	return calls
}
