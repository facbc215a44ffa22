package e2e

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
)

// excess is by how many tokens the calls went beyond the limit, times a share,
// in the worst of all windows: admitted − burst − rate·w, not positive if the
// limit was kept.
//
// A token was taken at an instant between the start and the end of its call,
// nobody can say when. So a window from the start of one call to the end of
// another counts only those calls that lie within it as a whole: all of their
// tokens were certainly taken in it. Hence a positive excess proves that the
// limit was broken, and a limiter that keeps it never raises an alarm. What
// the method may overlook are the tokens of calls that stick out of the window,
// and rate times the length of two calls: a few, if most calls are short.
//
// A window that is worth looking at starts with a call and ends with one. They
// are tried from the last start to the first. The calls within reach are in a
// tree, ordered by their end, that knows the best end for all of them at once.
func excess(calls []Call, limit hybrid.Limit, share float64) float64 {
	return excessOver(calls, share*float64(limit.Count())/limit.Period().Seconds(), share*float64(limit.Burst()))
}

// excessOver is excess for a rate and a burst in tokens.
func excessOver(calls []Call, perSecond, burst float64) float64 {
	calls = slices.DeleteFunc(slices.Clone(calls), func(c Call) bool { return !c.Allowed })
	if len(calls) == 0 {
		return math.Inf(-1)
	}
	var (
		zero    = calls[0].Start
		seconds = func(at int64) float64 { return time.Duration(at - zero).Seconds() }
		worst   = math.Inf(-1)
	)
	slices.SortFunc(calls, func(a, b Call) int { return cmp.Compare(a.End, b.End) })
	byStart := make([]int, len(calls)) // places in the order of ends
	for i := range byStart {
		byStart[i] = i
	}
	slices.SortFunc(byStart, func(i, j int) int { return cmp.Compare(calls[j].Start, calls[i].Start) })
	tree := newEnds(len(calls))
	for _, i := range byStart {
		tree.add(i, float64(calls[i].N), perSecond*seconds(calls[i].End))
		worst = max(worst, tree.best()+perSecond*seconds(calls[i].Start)-burst)
	}
	return worst
}

// ends is a tree over the calls in the order of their ends. A node knows the sum
// of tokens below it, and the highest value of "tokens up to this end, less what
// the time up to this end is worth".
type ends struct {
	leaves     int
	sum, value []float64
}

func newEnds(n int) *ends {
	e := &ends{leaves: 1}
	for e.leaves < n {
		e.leaves *= 2
	}
	e.sum = make([]float64, 2*e.leaves)
	e.value = slices.Repeat([]float64{math.Inf(-1)}, 2*e.leaves)
	return e
}

func (e *ends) add(i int, tokens, worth float64) {
	i += e.leaves
	e.sum[i], e.value[i] = tokens, tokens-worth
	for i /= 2; i > 0; i /= 2 {
		left, right := 2*i, 2*i+1
		e.sum[i] = e.sum[left] + e.sum[right]
		e.value[i] = max(e.value[left], e.sum[left]+e.value[right])
	}
}

func (e *ends) best() float64 { return e.value[1] }

// rounding is what a comparison of sums of floating-point numbers needs.
const rounding = 1e-6

// The judge is judged: against every window tried one by one, on the calls of a
// bucket that keeps its limit and of one that gives away a few tokens.
func TestExcessFindsWhatABrokenBucketGivesAway(t *testing.T) {
	limit := hybrid.PerSecond(100).WithBurst(20)
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		for _, gift := range []int{0, 4} {
			calls := bucketCalls(rnd, limit, gift)
			got := excess(calls, limit, 1)
			if want := excessByHand(calls, limit); math.Abs(got-want) > rounding {
				t.Fatalf("seed %d, gift %d: excess %v, one window after the other gives %v", seed, gift, got, want)
			}
			if gift == 0 && got > rounding {
				t.Errorf("seed %d: excess %v of a bucket that kept its limit", seed, got)
			}
			if gift > 0 && got < float64(gift)-1 {
				t.Errorf("seed %d: excess %v of a bucket that gave away %d tokens", seed, got, gift)
			}
		}
	}
}

// bucketCalls are 100 requests at twice the rate of a bucket, which takes up its
// tokens up to a millisecond after a call's start and up to one before its end,
// and which at some time gives away a number of tokens.
func bucketCalls(rnd *rand.Rand, limit hybrid.Limit, gift int) (calls []Call) {
	const ms = int64(time.Millisecond)
	perNano := float64(limit.Count()) / float64(limit.Period())
	tokens, last, at := float64(limit.Burst()), int64(0), int64(0)
	for i := range 100 {
		at += int64(rnd.ExpFloat64() / (2 * perNano))
		tokens = min(float64(limit.Burst()), tokens+float64(at-last)*perNano)
		last = at
		if i == 60 {
			tokens += float64(gift)
		}
		c := Call{Start: at - rnd.Int64N(ms), End: at + rnd.Int64N(ms), N: 1 + rnd.IntN(2)}
		if c.Allowed = tokens >= float64(c.N); c.Allowed {
			tokens -= float64(c.N)
		}
		calls = append(calls, c)
	}
	return calls
}

func excessByHand(calls []Call, limit hybrid.Limit) float64 {
	worst := math.Inf(-1)
	for _, first := range calls {
		for _, last := range calls {
			if !first.Allowed || !last.Allowed || last.End < first.Start {
				continue
			}
			n := 0
			for _, c := range calls {
				if c.Allowed && c.Start >= first.Start && c.End <= last.End {
					n += c.N
				}
			}
			w := time.Duration(last.End - first.Start)
			worst = max(worst, float64(n)-float64(limit.Burst())-w.Seconds()*float64(limit.Count())/limit.Period().Seconds())
		}
	}
	return worst
}
