package breaker_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/resilient-go/limiter/breaker"
)

// An ending is one of the ways in which calls end: five verdicts, a panic and
// runtime.Goexit.
type ending struct {
	verdict breaker.Verdict
	end     func() error
}

func returns(err error) func() error { return func() error { return err } }

var endings = []ending{
	{breaker.Healthy, returns(nil)},
	{breaker.Ignored, returns(errIgnored)},
	{breaker.Failed, returns(errFailed)},
	{breaker.Hung, returns(errHung)},
	{breaker.Fatal, returns(errFatal)},
	{breaker.Failed, func() error { panic("boom") }},
	{breaker.Failed, goexit},
}

// A step is a call, in the background or not, a pause, or another kind of probe.
type step struct {
	what   string
	ending int
	took   time.Duration
}

func anyStep(t *rapid.T) step {
	return step{
		what:   rapid.SampledFrom([]string{"call", "call", "begin", "begin", "wait", "probe"}).Draw(t, "what"),
		ending: rapid.SampledFrom([]int{0, 0, 0, 1, 2, 2, 3, 3, 4, 5, 6}).Draw(t, "ending"),
		took:   rapid.SampledFrom([]time.Duration{0, 10, 35, 50, 400, 3000}).Draw(t, "ms") * time.Millisecond,
	}
}

// Under any sequence of outcomes, of calls that overlap and of probes, the
// breaker is in the state that the model is in, and when Redis is well it
// closes: it is never stuck half-open.
func TestBreakerAgreesWithItsModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		steps := rapid.SliceOfN(rapid.Custom(anyStep), 1, 80).Draw(r, "steps")
		wrong := ""
		synctest.Test(t, func(*testing.T) { wrong = compare(steps) })
		if wrong != "" {
			r.Fatal(wrong)
		}
	})
}

// compare takes both through the steps and says what is wrong, if anything.
func compare(steps []step) string {
	var (
		m     = &model{since: time.Now()}
		turn  sync.Mutex // of what ends in one moment, the one that ends first for both
		probe atomic.Pointer[step]
	)
	probe.Store(&step{})
	b := breaker.New(breaker.Config{
		Judge: judge, SlowAfter: modelSlow, Patience: modelPatience,
		Probe: func() error {
			m.probe()
			begun, s := time.Now(), probe.Load()
			time.Sleep(s.took)
			m.probed(endings[s.ending].verdict, begun)
			return endings[s.ending].end()
		},
	})
	call := func(s step) {
		era, ran := m.begin(), false
		defer func() {
			_ = recover()
			if ran {
				turn.Unlock()
			}
		}()
		err := b.Do(func() error {
			begun := time.Now()
			time.Sleep(s.took)
			turn.Lock()
			ran = true
			m.end(endings[s.ending].verdict, begun, era)
			return endings[s.ending].end()
		})
		if !ran && err != breaker.ErrOpen {
			m.fail("a call was refused without ErrOpen")
		}
	}
	check := func() string {
		synctest.Wait()
		return m.differs(b)
	}
	wrong := ""
	for i, s := range steps {
		switch s.what {
		case "call":
			go call(s)
			time.Sleep(s.took)
		case "begin":
			go call(s)
		case "wait":
			time.Sleep(s.took)
		case "probe":
			probe.Store(&s)
		}
		if wrong = check(); wrong != "" {
			wrong = fmt.Sprintf("after step %d: %s", i, wrong)
			break
		}
	}
	probe.Store(&step{})
	time.Sleep(5 * time.Second) // what is under way ends, and another probe comes
	if wrong == "" {
		wrong = check()
	}
	if s := b.State(); wrong == "" && s != breaker.Closed {
		wrong = fmt.Sprintf("Redis is well, and the breaker is still %v", s)
	}
	b.Close()
	return wrong
}
