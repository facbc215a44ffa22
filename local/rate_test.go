package local_test

import (
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/resilient-go/limiter/local"
)

const exact = 1 << 53

func TestRateTimeFor(t *testing.T) {
	for _, c := range []struct {
		rate  local.Rate
		micro int64
		want  time.Duration
	}{
		{local.Rate{Num: 1, Den: 1}, 0, 0},
		{local.Rate{Num: 1, Den: 1}, -5, 0},
		{local.Rate{Num: 1, Den: 1}, math.MinInt64, 0},
		{local.Rate{Num: 1, Den: 1}, 1, time.Microsecond},
		{local.Rate{Num: 1, Den: 1}, local.Unit, time.Second},
		{local.Rate{Num: 7, Den: 3}, local.Unit, 428571429}, // 428,571,428.6 rounded up
		{local.Rate{Num: 7, Den: 3}, 7 * local.Unit, 3 * time.Second},
		{local.Rate{Num: 1e9, Den: 1}, local.Unit, 1},
		{local.Rate{Num: 1e9, Den: 1}, 1, 1}, // a millionth of a nanosecond
		{local.Rate{Num: 1e9, Den: 1}, local.Unit + 1, 2},
		{local.Rate{Num: 1, Den: 12e6}, local.Unit, 12e6 * time.Second},
		{local.Rate{Num: 1, Den: 366 * 86400}, local.Unit, 366 * 24 * time.Hour},
		{local.Rate{Num: 1, Den: 366 * 86400}, 142 * local.Unit, 142 * 366 * 24 * time.Hour},
		{local.Rate{Num: 1, Den: 1}, exact - 1, (exact - 1) * 1000},
		{local.Rate{Num: 1, Den: exact - 1}, 1, (exact - 1) * 1000},
		{local.Rate{Num: exact - 1, Den: 1}, exact - 1, 1000},
		{local.Rate{Num: exact - 1, Den: 1}, 1, 1},
		{local.Rate{Num: exact - 2, Den: 1}, exact - 1, 1001},
	} {
		if got := c.rate.TimeFor(c.micro); got != c.want {
			t.Errorf("%d micro-tokens at %d/%d take %d ns, want %d", c.micro, c.rate.Num, c.rate.Den, got, c.want)
		}
	}
}

func TestRateTimeForRoundsUpInExactArithmetic(t *testing.T) {
	anywhere := func(most int64) *rapid.Generator[int64] { // on a logarithmic scale
		return rapid.Custom(func(t *rapid.T) int64 {
			bits := rapid.IntRange(1, 53).Draw(t, "bits")
			return rapid.Int64Range(1, min(most, 1<<bits)).Draw(t, "value")
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		r := local.Rate{Num: anywhere(exact-1).Draw(t, "num"), Den: anywhere(exact-1).Draw(t, "den")}
		micro := anywhere((exact-1)/r.Den).Draw(t, "micro")
		x := new(big.Int).Mul(big.NewInt(micro), big.NewInt(r.Den))
		x.Mul(x, big.NewInt(1000)).Add(x, big.NewInt(r.Num-1))
		x.Quo(x, big.NewInt(r.Num))
		if got := r.TimeFor(micro); !x.IsInt64() || int64(got) != x.Int64() {
			t.Fatalf("%d micro-tokens at %d/%d take %d ns, want %v", micro, r.Num, r.Den, got, x)
		}
	})
}

func TestRateInFloatingPoint(t *testing.T) {
	for _, c := range []struct {
		rate      local.Rate
		perSecond float64
		d         time.Duration
		micro     float64
	}{
		{local.Rate{Num: 1, Den: 1}, 1, time.Second, 1e6},
		{local.Rate{Num: 7, Den: 3}, 7.0 / 3, 3 * time.Second, 7e6},
		{local.Rate{Num: 1e9, Den: 1}, 1e9, time.Nanosecond, 1e6},
		{local.Rate{Num: 1, Den: 366 * 86400}, 1 / (366 * 86400.0), 366 * 24 * time.Hour, 1e6},
		{local.Rate{Num: 1e9, Den: 1}, 1e9, math.MaxInt64, math.MaxInt64 * 1e6},
	} {
		if got := c.rate.PerSecond(); !about(got, c.perSecond) {
			t.Errorf("%d/%d is %v per second, want %v", c.rate.Num, c.rate.Den, got, c.perSecond)
		}
		if got := c.rate.In(c.d); !about(got, c.micro) {
			t.Errorf("%d/%d is worth %v in %v, want %v", c.rate.Num, c.rate.Den, got, c.d, c.micro)
		}
	}
}
