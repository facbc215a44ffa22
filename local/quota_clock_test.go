package local_test

import (
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/resilient-go/limiter/local"
)

// Ten seconds at 1,000 per second, asked three times a millisecond, but in a
// random order within each 64 ms: an honest bucket admits 10,000 and what it had.
// What it stands on does not, which is why it is asked beside it.
func TestQuotaMintsNothingWhenItsClockJumps(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	q := local.NewQuota(1000, 100, 0, 0)
	bare := rate.NewLimiter(1000, 100)
	var admitted, minted int
	for first := range 157 {
		for _, i := range rnd.Perm(3 * 64) {
			now := min(10*second, int64(64*first+i/3)*ms)
			if q.Take(1, now) {
				admitted++
			}
			q.Tokens(0)
			q.RetryAfter(1, now-second)
			q.Lower(1e6, 0)
			if bare.AllowN(time.Unix(0, now), 1) {
				minted++
			}
		}
	}
	if admitted != 10_000 {
		t.Errorf("admitted %d in 10 s of 1,000/s, want 10,000", admitted)
	}
	if minted <= 10_100 {
		t.Errorf("x/time/rate alone admitted %d: these instants prove nothing", minted)
	}
}

// Many goroutines read a clock and are overtaken before they have the lock.
func TestQuotaMintsNothingWhenInstantsArriveOutOfOrder(t *testing.T) {
	const (
		goroutines = 64
		perSecond  = 1000
		burst      = 50
		tick       = 100_000 // ns
	)
	rounds := many(200, 5000)
	var (
		mu       sync.Mutex
		q        = local.NewQuota(perSecond, burst, 0, 0)
		clock    atomic.Int64
		admitted int64
		backward int
		latest   int64
		group    sync.WaitGroup
	)
	for i := range uint64(goroutines) {
		rnd := rand.New(rand.NewPCG(i, 7))
		group.Go(func() {
			for range rounds {
				now := clock.Add(tick)
				for range rnd.IntN(4) {
					runtime.Gosched()
				}
				mu.Lock()
				if now < latest {
					backward++
				}
				latest = max(latest, now)
				if q.Take(1, now) {
					admitted++
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	end := clock.Load()
	for q.Take(1, end) {
		admitted++
	}
	// The demand is ten times the rate, so that the bucket is never full again.
	if want := end * perSecond / second; admitted != want {
		t.Errorf("admitted %d in %v, want %d exactly", admitted, time.Duration(end), want)
	}
	if backward == 0 {
		t.Error("no instant arrived out of order: the run proves nothing")
	}
}

// Over a long time a quota that is always asked admits its rate, at every rate
// and however often it is asked: what an exact bucket does, and never more than
// burst + rate·w.
func TestQuotaAdmitsItsRateInTheLongRun(t *testing.T) {
	for _, perSecond := range []float64{1 / year, 5.0 / 60, 1.0 / 3, 7.0 / 3, 10, 1000, 123456.789, 1e9 / 3, 1e9} {
		for _, burst := range []int64{1, 3, 100} {
			for _, asks := range []float64{0.37, 1, 2.9, 17} { // per token
				admitted, exact, w := longRun(perSecond, burst, asks, many(150, 20_000))
				// x/time/rate takes a debt of less than a nanosecond for none.
				most := float64(burst) + perSecond*w + perSecond/1e9 + 1e-6
				least := float64(exact - 1)
				if float64(burst) >= 1+1/asks { // nothing that comes between two asks is spilt
					least = math.Max(least, math.Floor(float64(burst)+perSecond*w)*0.999-1)
				}
				if got := float64(admitted); got > most || got < least {
					t.Errorf("%v per second, burst %d, %v asks per token: admitted %d, want %.1f to %.1f",
						perSecond, burst, asks, admitted, least, most)
				}
			}
		}
	}
}

// longRun asks for as long as so many tokens take, and says what was admitted,
// what an exact bucket would have, and in how many seconds.
func longRun(perSecond float64, burst int64, asks float64, tokens int) (admitted, exact int64, w float64) {
	step := max(1, int64(1e9/perSecond/asks))
	q := local.NewQuota(perSecond, burst, float64(burst), 0)
	ref := newBucket(perSecond, float64(burst))
	var now int64
	for range int(float64(tokens) * asks) {
		if now > math.MaxInt64/2 {
			break
		}
		for q.Take(1, now) {
			admitted++
		}
		ref.advance(now)
		for ref.has(1, 0) {
			ref.add(-1)
			exact++
		}
		now += step
	}
	return admitted, exact, float64(now-step) / 1e9
}

func TestQuotaHasNoInfiniteRate(t *testing.T) {
	q := local.NewQuota(1e9, 10, 10, second)
	var admitted int
	for range 1000 {
		if q.Take(1, second) {
			admitted++
		}
	}
	if admitted != 10 {
		t.Errorf("a billion per second with a burst of 10 admitted %d in one instant, want 10", admitted)
	}
}
