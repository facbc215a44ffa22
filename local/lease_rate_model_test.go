package local_test

import (
	"fmt"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/resilient-go/limiter/local"
)

// A meterage runs a lease with a rate beside two models. Exact knows every
// fraction of what is held. It is left aside once something was taken without the
// lock, or while a message was under way, for the lease does not know the instant
// of that. What may be admitted is known all the same: gauge is the bucket of
// burst and rate that all must pass.
type meterage struct {
	lease local.Lease
	now   int64

	rate, burst, end int64
	exact            *big.Rat // micro-tokens; nil: left aside
	at               int64    // of exact
	gauge            *bucket

	flying bool
	kept   int64
	sent   int64

	granted, spent, earned int64
}

func newMeterage(tokens, rate, burst int64) *meterage {
	g := &meterage{rate: rate, burst: burst, end: 20 * second, exact: new(big.Rat), granted: tokens}
	g.gauge = newBucket(float64(rate)/1e6, float64(max(burst, tokens*micro))/1e6)
	g.lease.Grant(0, tokens, g.end/2, g.end, 0)
	g.lease.Metered(rate, burst, 0, 0)
	g.exact.SetInt64(tokens * micro)
	return g
}

// step makes one step and compares.
func (g *meterage) step(kind byte, x uint16) error {
	l, n := &g.lease, int64(x%8)
	switch kind % 8 {
	case 0, 1:
		g.now += int64(x) * 1009
	case 2:
		g.now += int64(x) * 5000
	case 3:
		if _, _, ok := l.Take(g.now, n); ok {
			g.exact = nil
			return g.spend(n)
		}
	case 4:
		ok := l.TakeLate(g.now, n)
		if g.exact != nil {
			g.earn()
			want := n >= 1 && g.now < g.end && g.exact.Cmp(new(big.Rat).SetInt64(n*micro)) >= 0
			if ok != want {
				return fmt.Errorf("TakeLate(%d, %d) of %v is %v", g.now, n, g.exact.FloatString(9), ok)
			}
			if ok {
				g.exact.Sub(g.exact, new(big.Rat).SetInt64(n*micro))
			}
			if ok && g.flying {
				g.exact = nil // the answer makes up for the way in one piece
			}
		}
		if ok {
			return g.spend(n)
		}
	case 5:
		if !g.flying && g.now < g.end {
			g.earn()
			g.kept, _, _ = l.Report(g.now)
			g.flying, g.sent = true, g.now
			if g.exact != nil {
				// A fraction of a micro-token is on its way to the next one.
				if held := g.kept*micro + l.Part(); held != g.whole() {
					return fmt.Errorf("at %d the lease holds %d micro-tokens, want %v", g.now, held, g.exact.FloatString(9))
				}
			}
		}
	case 6:
		if g.flying && g.now < g.end {
			if g.exact != nil && g.exact.Cmp(new(big.Rat).SetInt64(g.whole())) != 0 {
				g.exact.SetInt64(g.whole()) // the answer drops the fraction
			}
			l.Grant(g.kept, g.kept, g.end/2, g.end, 0)
			l.Metered(g.rate, g.burst, g.sent, g.now)
			g.flying = false
			if g.exact != nil {
				g.at = g.sent
				g.earn()
				g.exact.SetInt64(g.whole())
			}
		}
	case 7:
		g.earned += l.Earned()
	}
	if b := l.Balance(g.now); b < 0 || b > l.Rights(g.now) {
		return fmt.Errorf("a balance of %d, rights of %d", b, l.Rights(g.now))
	}
	return nil
}

// earn brings exact to now.
func (g *meterage) earn() {
	if g.exact == nil || g.flying {
		return
	}
	now := max(g.at, min(g.now, g.end))
	gain := new(big.Rat).SetFrac64(g.rate, second)
	gain.Mul(gain, new(big.Rat).SetInt64(now-g.at))
	sum, brim := gain.Add(gain, g.exact), new(big.Rat).SetInt64(g.burst)
	if sum.Cmp(brim) > 0 {
		sum = brim
		if g.exact.Cmp(brim) > 0 {
			sum = g.exact
		}
	}
	g.exact, g.at = sum, now
}

func (g *meterage) whole() int64 {
	return new(big.Int).Quo(g.exact.Num(), g.exact.Denom()).Int64()
}

func (g *meterage) spend(n int64) error {
	g.spent += n
	g.gauge.advance(g.now)
	if !g.gauge.has(n, 0) {
		return fmt.Errorf("at %d, %d tokens were taken of %v", g.now, n, g.gauge.level.FloatString(9))
	}
	g.gauge.add(-n)
	return nil
}

// finish holds what was granted and earned against what became of it.
func (g *meterage) finish() error {
	held, part, _, lost := g.lease.Remove(g.now)
	g.earned += g.lease.Earned()
	if part < 0 || part >= micro {
		return fmt.Errorf("a part of %d", part)
	}
	if g.granted+g.earned != g.spent+held+lost {
		return fmt.Errorf("granted %d and earned %d, spent %d, held %d and lost %d", g.granted, g.earned, g.spent, held, lost)
	}
	return nil
}

func TestMeteredLeaseAgreesWithItsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newMeterage(rapid.Int64Range(0, 20).Draw(t, "tokens"), rapid.OneOf(
			rapid.Int64Range(1, 5000*micro), rapid.Int64Range(1, 5*micro)).Draw(t, "rate"),
			rapid.Int64Range(micro, 20*micro).Draw(t, "burst"))
		locked := rapid.Bool().Draw(t, "locked")
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			kind := rapid.Byte().Draw(t, "kind")
			if locked && kind%8 == 3 {
				kind++
			}
			if err := g.step(kind, rapid.Uint16().Draw(t, "x")); err != nil {
				t.Fatal(err)
			}
		}
		if err := g.finish(); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzMeteredLease(f *testing.F) {
	f.Add(int64(5), int64(1000*micro), int64(5*micro), []byte{2, 255, 255, 3, 5, 0, 4, 1, 0, 5, 0, 0, 1, 9, 9, 6, 0, 0, 4, 2, 0})
	f.Add(int64(0), int64(7), int64(micro+1), []byte("report, wait, grant, take, take late"))
	f.Fuzz(func(t *testing.T, tokens, rate, burst int64, tape []byte) {
		g := newMeterage(tokens&31, max(1, rate&(1<<33-1)), max(micro, burst&(1<<25-1)))
		for ; len(tape) >= 3; tape = tape[3:] {
			if err := g.step(tape[0], uint16(tape[1])|uint16(tape[2])<<8); err != nil {
				t.Fatal(err)
			}
		}
		if err := g.finish(); err != nil {
			t.Fatal(err)
		}
	})
}
