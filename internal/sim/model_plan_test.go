package sim

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/resilient-go/limiter/hybrid"
)

// A plan is what one seed draws before anything happens: the fleet, its limit,
// its network and the kinds of faults that it meets. What is drawn for one kind of
// fault does not depend on the others, so that a failing schedule can be played
// again without some of them.
type plan struct {
	seed      uint64
	instances int
	limit     hybrid.Limit
	usual     int     // size of a request
	calls     float64 // per second that the rate is worth in such requests
	horizon   time.Duration
	lease     time.Duration // what one lasts under about the load of the limit
	timeout   time.Duration
	share     float64
	headroom  float64
	rtt       time.Duration
	jitter    time.Duration
	chaos     time.Duration // how long the faults go on
	kinds     []string
}

// The kinds of faults.
const (
	crashes   = "crashes"
	churn     = "churn"
	pauses    = "pauses"
	noRequest = "lost requests"
	noReply   = "lost replies"
	late      = "late messages"
	overtaken = "overtaken messages"
	cuts      = "cuts"
	deafness  = "deafness"
	outages   = "outages"
	freezes   = "freezes"
	drift     = "drift"
	forward   = "clock forward"
	back      = "clock back"
	loss      = "data lost"
	older     = "older data"
	limits    = "other limits"
)

var kinds = []string{
	crashes, churn, pauses, noRequest, noReply, late, overtaken, cuts, deafness, outages, freezes,
	drift, forward, back, loss, older, limits,
}

// stream is chance for one purpose.
func stream(seed uint64, purpose string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(purpose))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// between is random with an even logarithm.
func between(rnd *rand.Rand, low, high float64) float64 {
	return low * math.Pow(high/low, rnd.Float64())
}

// span is a random time with an even logarithm.
func span(rnd *rand.Rand, low, high time.Duration) time.Duration {
	return time.Duration(between(rnd, float64(low), float64(high)))
}

func oneOf[T any](rnd *rand.Rand, of ...T) T { return of[rnd.IntN(len(of))] }

// anyLimit draws from one a minute to 5,000 a second. All are a whole number a
// minute, so that the books are kept in whole numbers.
func anyLimit(rnd *rand.Rand) hybrid.Limit {
	perMinute := math.Round(between(rnd, 1, 300_000))
	burst := between(rnd, 1, 5000)
	if rnd.IntN(3) > 0 { // of the order of the rate
		burst = min(max(1, perMinute/60*between(rnd, 0.05, 5)), 5000)
	}
	burst = max(burst, leastBurst(perMinute))
	return hybrid.PerMinute(int(perMinute)).WithBurst(int(math.Round(burst)))
}

// leastBurst is what a rate gains in 25 ms, which is more than a round trip: with
// less the root is full most of the time, and it takes very many requests to show
// anything.
func leastBurst(perMinute float64) float64 { return perMinute / 60 / 40 }

func newPlan(seed uint64) *plan {
	rnd := stream(seed, "plan")
	p := &plan{
		seed:      seed,
		instances: 1 + rnd.IntN(5) + rnd.IntN(2)*rnd.IntN(8), // 1 to 12, rather few
		limit:     anyLimit(rnd),
		horizon:   hybrid.DefaultLeaseHorizon,
		timeout:   time.Millisecond * oneOf[time.Duration](rnd, 5, 20, 50, 50, 100),
		share:     1,
		headroom:  oneOf(rnd, 1, 1, 0.8, 1.5),
	}
	if rnd.IntN(2) == 0 {
		p.horizon = span(rnd, 20*time.Millisecond, 500*time.Millisecond)
	}
	p.rtt = span(rnd, 100*time.Microsecond, p.timeout/6) // an answer and the one before it come well within the time-out
	p.jitter = time.Duration(rnd.Int64N(int64(p.rtt / 2)))
	if rnd.IntN(6) == 0 {
		p.share = max(0.2+0.8*rnd.Float64(), 1/float64(p.limit.Burst()))
	}
	perSecond := ratePerSecond(p.limit)
	p.usual = max(1, min(int(perSecond/between(rnd, 10, 40)), max(p.largest()/10, min(p.largest(), 1+int(perSecond/100)))))
	p.calls = perSecond / float64(p.usual)
	// A horizon stretches until it covers eight calls of an instance.
	horizon := 8 / (p.calls / float64(p.instances)) * 1e9
	p.lease = max(500*time.Millisecond, 5*max(p.horizon, time.Duration(min(horizon, 5e9))))
	p.chaos = span(rnd, 2*p.lease, 4*p.lease)
	// Too many requests cost time and show little more.
	p.chaos = max(time.Second, min(p.chaos, time.Duration(120/p.calls*1e9)))
	for _, kind := range kinds {
		if rnd.IntN(10) < oneOf(rnd, 1, 3, 6) {
			p.kinds = append(p.kinds, kind)
		}
	}
	return p
}

func ratePerSecond(l hybrid.Limit) float64 { return float64(l.Count()) / 60 }

// largest is the largest request that can pass.
func (p *plan) largest() int {
	return max(1, int(p.share*float64(p.limit.Burst())+1e-9))
}

func (p *plan) has(kind string) bool { return slices.Contains(p.kinds, kind) }

func (p *plan) without(kind string) *plan {
	q := *p
	q.kinds = slices.DeleteFunc(slices.Clone(p.kinds), func(k string) bool { return k == kind })
	return &q
}

func (p *plan) String() string {
	return fmt.Sprintf("%d instances, %v, requests of %d, horizon %v, lease %v, time-out %v, share %.2f, headroom %v, round trip %v + %v, %v of %s",
		p.instances, p.limit, p.usual, p.horizon, p.lease, p.timeout, p.share, p.headroom, p.rtt, p.jitter, p.chaos,
		strings.Join(p.kinds, ", "))
}
