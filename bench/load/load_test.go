package load

import (
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Each answer takes a millisecond; the calls that have begun when the time is up
// are the last.
func TestClosedLoadCountsWhatItAsked(t *testing.T) {
	for _, every := range []int{1, 4} {
		synctest.Test(t, func(t *testing.T) {
			var asked [3]atomic.Int64
			out := Closed{
				Goroutines: 4, Duration: 10*time.Millisecond + time.Microsecond, TimeOneIn: every,
				Keys: [][]string{{"yes", "no"}, {"bad"}},
				Ask: func(key string) (bool, error) {
					time.Sleep(time.Millisecond)
					switch key {
					case "yes":
						asked[0].Add(1)
						return true, nil
					case "no":
						asked[1].Add(1)
						return false, nil
					}
					asked[2].Add(1)
					return true, errors.New("no decision")
				},
			}.Run()
			// Whole turns of every calls.
			each := (11 + every - 1) / every * every
			if out.Decisions != 4*each || out.Elapsed != time.Duration(each)*time.Millisecond {
				t.Errorf("timing one in %d: %d decisions in %v, want %d in %dms", every, out.Decisions, out.Elapsed, 4*each, each)
			}
			if int64(out.Admitted) != asked[0].Load() || int64(out.Errors) != asked[2].Load() || out.Errors != 2*each {
				t.Errorf("timing one in %d: %d admitted of %d, %d errors of %d", every, out.Admitted, asked[0].Load(), out.Errors, asked[2].Load())
			}
			if got := asked[0].Load() + asked[1].Load(); got != int64(2*each) || asked[1].Load() < int64(each-1) {
				t.Errorf("timing one in %d: %d yes and %d no, want them in turns", every, asked[0].Load(), asked[1].Load())
			}
			if got := int(out.Latency.Count()); got != 4*each/every || out.Latency.Max() != time.Millisecond {
				t.Errorf("timing one in %d: %d timed, at most %v", every, got, out.Latency.Max())
			}
		})
	}
}

// Calls come at their times while others wait for an answer.
func TestOpenLoadDoesNotWaitForAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now().Add(time.Second)
		calls := Open{
			Rates: []float64{10, 4}, Duration: 2 * time.Second,
			Ask: func(instance int) (bool, error) {
				time.Sleep(time.Minute)
				if instance == 1 {
					return true, errors.New("no decision")
				}
				return true, nil
			},
		}.Run(start)
		var n [2]int
		for _, c := range calls {
			n[c.Instance]++
			if c.Begun < 0 || c.Begun > 2*time.Second || c.Done != c.Begun+time.Minute {
				t.Errorf("a call from %v to %v", c.Begun, c.Done)
			}
			if c.Admitted != (c.Instance == 0) || (c.Err != nil) != (c.Instance == 1) {
				t.Errorf("a call of instance %d: admitted %t, %v", c.Instance, c.Admitted, c.Err)
			}
		}
		if n != [2]int{20, 8} {
			t.Errorf("%v calls by instance, want 20 and 8", n)
		}
	})
}

func TestZipfPrefersTheFirst(t *testing.T) {
	names := Names(1000)
	keys := Zipf(names, 1.1, 7)
	if len(keys)&(len(keys)-1) != 0 || len(Hot()) != 1 {
		t.Fatalf("lengths %d and %d are not powers of two", len(keys), len(Hot()))
	}
	n := map[string]int{}
	for _, k := range keys {
		n[k]++
	}
	// P(1) is 1/(1 + 2^-1.1 + …), about 0.179 of a thousand keys.
	sum := 0.0
	for k := 1; k <= 1000; k++ {
		sum += math.Pow(float64(k), -1.1)
	}
	for k := 1; k <= 3; k++ {
		want := math.Pow(float64(k), -1.1) / sum * float64(len(keys))
		if got := float64(n[names[k-1]]); math.Abs(got-want) > 0.1*want {
			t.Errorf("key %d is drawn %v times, want about %.0f", k, got, want)
		}
	}
	if other := Zipf(names, 1.1, 7); other[0] != keys[0] || other[len(other)-1] != keys[len(keys)-1] {
		t.Error("the same seed gives another sequence")
	}
}
