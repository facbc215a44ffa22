package sim_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/resilient-go/limiter/internal/sim"
)

type admitted struct {
	at time.Duration
	n  int64
}

// random admissions: some at one instant, some after a pause.
func random(r *rand.Rand) (all []admitted) {
	at := time.Duration(0)
	for range 1 + r.IntN(60) {
		switch r.IntN(4) {
		case 0:
		case 1:
			at += time.Duration(r.IntN(1000)) * time.Microsecond
		case 2:
			at += time.Duration(r.IntN(400)) * time.Millisecond
		default:
			at += 100 * time.Millisecond // so that windows of exactly a second occur
		}
		all = append(all, admitted{at, 1 + r.Int64N(20)})
	}
	return all
}

// What the ledger finds while it goes along is what looking at each window finds.
func TestLedgerFindsTheWorstWindow(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 2))
		all, rate := random(r), 0.1+200*r.Float64()
		l := sim.NewLedger(rate)
		worst, second, sum := 0.0, int64(0), int64(0)
		bins := map[int]int64{}
		for j, a := range all {
			l.Admit(a.at, a.n)
			sum += a.n
			bins[int(a.at/sim.BinWidth)] += a.n
			inside := int64(0)
			for i := j; i >= 0; i-- {
				inside += all[i].n
				worst = math.Max(worst, float64(inside)-rate*(a.at-all[i].at).Seconds())
				if a.at-all[i].at < time.Second {
					second = max(second, inside)
				}
			}
		}
		if math.Abs(l.Worst()-worst) > 1e-6 || l.WorstWindow != second || l.Admitted != sum {
			t.Fatalf("seed %d: worst %v, in a second %d, in all %d; want %v, %d, %d",
				seed, l.Worst(), l.WorstWindow, l.Admitted, worst, second, sum)
		}
		for bin, n := range l.Bins {
			if n != bins[bin] {
				t.Fatalf("seed %d: bin %d has %d, want %d", seed, bin, n, bins[bin])
			}
		}
	}
}

// A long course drops what is older than a second, and only that.
func TestLedgerForgetsNothingTooEarly(t *testing.T) {
	l := sim.NewLedger(1)
	for ms := range 10_000 {
		l.Admit(time.Duration(ms)*time.Millisecond, 1)
	}
	if l.WorstWindow != 1000 {
		t.Errorf("%d in a second, want one per millisecond", l.WorstWindow)
	}
}

func TestLedgerUnderANewRate(t *testing.T) {
	l := sim.NewLedger(10)
	l.Admit(0, 50)
	l.SetRate(time.Second, 100)
	l.Admit(1100*time.Millisecond, 30) // 10 are gone in the first second, 10 in the next tenth
	if l.Worst() != 60 {
		t.Errorf("worst %v, want 60", l.Worst())
	}
}

// One bucket admits its burst above the rate in some window, and never more.
func TestABucketStaysAtItsBurst(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 3))
		rate, burst := 1+100*r.Float64(), float64(1+r.IntN(50))
		b, l, passed := sim.NewBucket(rate, burst), sim.NewLedger(rate), int64(0)
		asked := append([]admitted{{0, 1}}, random(r)...)
		for range int64(burst) {
			asked = slices.Insert(asked, 0, admitted{0, 1}) // it is full at first, and then empty
		}
		for _, a := range asked {
			if b.Take(a.at, a.n) {
				l.Admit(a.at, a.n)
				passed += a.n
			}
		}
		if l.Worst() < burst || l.Worst() > burst+1e-6 || b.Admitted != passed {
			t.Fatalf("seed %d: worst %v with a burst of %v; it counts %d of %d", seed, l.Worst(), burst, b.Admitted, passed)
		}
	}
}

func TestABucketRefills(t *testing.T) {
	b := sim.NewBucket(10, 5)
	for _, c := range []struct {
		at   time.Duration
		n    int64
		want bool
	}{
		{0, 5, true},
		{99 * time.Millisecond, 1, false},
		{100 * time.Millisecond, 1, true},
		{299 * time.Millisecond, 2, false},
		{300 * time.Millisecond, 2, true},
		{time.Hour, 6, false}, // it holds no more than the burst
		{time.Hour, 5, true},
		{time.Hour, 1, false},
	} {
		if got := b.Take(c.at, c.n); got != c.want {
			t.Errorf("%d tokens at %v: %v, want %v", c.n, c.at, got, c.want)
		}
	}
}
