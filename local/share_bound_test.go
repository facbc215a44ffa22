package local_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/resilient-go/limiter/local"
)

// tolerance is what rounding may amount to in the runs below: a ten-trillionth
// part of the burst.
func tolerance(burst float64) float64 { return burst * 0x1p-43 }

// anyRate draws from 1 per 366 days to 1e9 per second, anyBurst from 1 to the
// largest of a valid limit.
func anyRate() *rapid.Generator[float64] {
	return rapid.OneOf(
		rapid.SampledFrom([]float64{1 / (366 * 86400.0), 5.0 / 60, 1, 7.0 / 3, 3, 1000, 1e9}),
		rapid.Map(rapid.Float64Range(math.Log(1/(366*86400.0)), math.Log(1e9)), math.Exp),
	)
}

func anyBurst() *rapid.Generator[float64] {
	return rapid.OneOf(
		rapid.Map(rapid.IntRange(1, 20), func(n int) float64 { return float64(n) }),
		rapid.Map(rapid.Float64Range(0, math.Log(4.5e9)), math.Exp),
	)
}

// op is one step of an instance that uses its share.
type op struct {
	kind byte
	x    uint16 // how much of what is possible, in 65,536ths
}

func (o op) of(most int64) int64 { return int64(float64(most+1) * float64(o.x) / 65536) }

// An instance takes tokens of a key as the limiter does: for callers who wait,
// and for a lease that it spends later.
type instance struct {
	share local.Share
	rate  float64
	burst float64
	now   int64
	held  int64   // on lease
	ref   *bucket // pays for each admission
	plain *bucket // knows the level while nothing was ever held
}

func newInstance(perSecond, burst float64) *instance {
	return &instance{
		share: local.NewShare(perSecond, burst, 0), rate: perSecond, burst: burst,
		ref: newBucket(perSecond, burst), plain: newBucket(perSecond, burst),
	}
}

// admit charges the reference, which must never owe anything.
func (i *instance) admit(n int64) error {
	i.ref.advance(i.now)
	i.ref.level.Sub(i.ref.level, rat(float64(n)))
	if !i.ref.has(0, tolerance(i.burst)) {
		return fmt.Errorf("at %d ns, by admitting %d, some window has passed burst + rate·w by %s tokens",
			i.now, n, i.ref.level.FloatString(12))
	}
	return nil
}

// do makes one step and checks what must hold after it.
func (i *instance) do(o op) error {
	s := &i.share
	s.Advance(i.now)
	if i.plain != nil {
		i.plain.advance(i.now)
	}
	n := o.of(int64(i.burst))
	had := s.Level()
	switch o.kind % 8 {
	case 0, 1: // time passes: up to 4 bursts' worth, mostly much less
		most := math.Min(4*i.burst/i.rate*1e9, float64(100*366*day-i.now))
		i.now += int64(most * math.Pow(float64(o.x)/65536, 8))
		s.Advance(i.now)
	case 2: // a caller who waits gets n
		ok := s.Take(n)
		if err := i.agrees(n, ok); err != nil {
			return err
		}
		if ok {
			i.lend(-n)
			return i.admit(n)
		}
	case 3: // or would have, but the root said no
		if s.Take(n) {
			s.Give(n)
			if had != s.Level() && i.held == 0 {
				return fmt.Errorf("take and give back of %d made %d tokens of %d", n, s.Level(), had)
			}
		}
	case 4: // a lease is granted
		i.lend(0)
		if n = o.of(s.Level()); n > 0 {
			i.plain = nil
		}
		if !s.Take(n) {
			return fmt.Errorf("%d of a level of %d were refused", n, s.Level())
		}
		i.held += n
		s.Hold(i.held)
	case 5: // some of it is spent, which nobody tells the share yet
		n = o.of(i.held)
		i.held -= n
		return i.admit(n)
	case 6: // now somebody does
		s.Hold(i.held)
	case 7: // the lease ends, or it is returned
		if o.x%4 == 0 {
			i.held = 0
			s.Hold(0)
		}
	}
	if level := float64(s.Level() + i.held); level > i.burst+tolerance(i.burst) {
		return fmt.Errorf("level and rights held are %v of %v", level, i.burst)
	}
	return nil
}

func (i *instance) lend(n int64) {
	if i.plain != nil {
		i.plain.add(n)
	}
}

// agrees compares a decision with exact arithmetic.
func (i *instance) agrees(n int64, ok bool) error {
	if i.plain == nil {
		return nil
	}
	if most := i.plain.has(n, tolerance(i.burst)); ok && !most {
		return fmt.Errorf("%d were had of %s", n, i.plain.level.FloatString(12))
	}
	if least := i.plain.has(n, -tolerance(i.burst)); !ok && least {
		return fmt.Errorf("%d were refused of %s", n, i.plain.level.FloatString(12))
	}
	return nil
}

func TestShareNeverPassesItsCapInAnyWindow(t *testing.T) {
	ops := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) op {
		return op{kind: rapid.Byte().Draw(t, "kind"), x: rapid.Uint16().Draw(t, "x")}
	}), 1, 200)
	rapid.Check(t, func(t *rapid.T) {
		i := newInstance(anyRate().Draw(t, "rate"), anyBurst().Draw(t, "burst"))
		for _, o := range ops.Draw(t, "ops") {
			if err := i.do(o); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func FuzzShare(f *testing.F) {
	f.Add(uint32(5), uint32(60), uint32(5), []byte("take some, wait some"))
	f.Add(uint32(1), uint32(366*86400), uint32(1), []byte{2, 255, 255, 0, 255, 255, 2, 255, 255})
	f.Add(uint32(1e9), uint32(1), uint32(4e9), []byte{4, 0, 128, 5, 255, 255, 0, 9, 9, 6, 0, 0, 2, 0, 255})
	f.Fuzz(func(t *testing.T, count, period, burst uint32, tape []byte) {
		if count == 0 || period == 0 || burst == 0 || count > 1e9 || period > 366*86400 {
			return
		}
		i := newInstance(float64(count)/float64(period), float64(burst))
		for ; len(tape) >= 3; tape = tape[3:] {
			if err := i.do(op{tape[0], binary.LittleEndian.Uint16(tape[1:])}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Whoever waits as long as he was told gets what he asked for, however often
// others were refused meanwhile, and a nanosecond earlier it is not there.
func TestShareRetryAfterThenTake(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate, burst := anyRate().Draw(t, "rate"), anyBurst().Draw(t, "burst")
		burst = math.Max(1, math.Min(burst, rate*1e9)) // full within 32 years
		s := local.NewShare(rate, burst, 0)
		ref := newBucket(rate, burst)
		var now int64
		for range rapid.IntRange(1, 20).Draw(t, "rounds") {
			if now > 100*366*day { // instants end after 292 years
				break
			}
			n := rapid.Int64Range(1, int64(burst)).Draw(t, "n")
			if s.Take(n) {
				ref.add(-n)
				continue
			}
			d := int64(s.RetryAfter(n, 0))
			early := s
			early.Advance(now + d - 1)
			ref.advance(now + d - 1)
			if early.Take(n) && !ref.has(n, tolerance(burst)) {
				t.Fatalf("%d were had a nanosecond before %d ns were over", n, d)
			}
			for range rapid.IntRange(0, 5).Draw(t, "asked meanwhile") {
				at := now + rapid.Int64Range(0, d-1).Draw(t, "at")
				s.Advance(at)
				if s.Level() >= n && !ref.has(n, tolerance(burst)) {
					t.Fatalf("%d were had at %d of %d ns", n, at-now, d)
				}
			}
			now += d
			s.Advance(now)
			ref.advance(now)
			if !s.Take(n) {
				t.Fatalf("%d were refused after the %d ns that they were to take", n, d)
			}
			ref.add(-n)
			now += rapid.Int64Range(0, d).Draw(t, "pause")
			s.Advance(now)
			ref.advance(now)
		}
	})
}
