package remote

import (
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

// replyOf makes a reply of a text: values between commas, with a letter before
// those that are no strings.
func replyOf(text string) any {
	switch text {
	case "nil":
		return nil
	case "string":
		return "OK"
	case "int":
		return int64(1)
	case "map":
		return map[any]any{}
	case "empty":
		return []any{}
	}
	var array []any
	for v := range strings.SplitSeq(text, ",") {
		kind, rest := "", v
		if v != "" {
			kind, rest = v[:1], v[1:]
		}
		switch kind {
		case "i":
			n, _ := strconv.ParseInt(rest, 10, 64)
			array = append(array, n)
		case "f":
			x, _ := strconv.ParseFloat(rest, 64)
			array = append(array, x)
		case "n":
			array = append(array, nil)
		case "b":
			array = append(array, true)
		case "a":
			array = append(array, []any{rest})
		default:
			array = append(array, v)
		}
	}
	return array
}

var seeds = []string{
	"nil", "string", "int", "map", "empty", "",
	"1,0,5000000,4000000,1000000,0,7,9,4000000,0,0,1000000,1,2",
	"1,0,-5000000,0,0,0,0,9,0,0,0,0,0,0",
	"1,0,5000000,4000000,1000000,0,7,9,4000000,0,0,1000000,1",
	"1,0,5000000,4000000,1000000,0,7,9,4000000,0,0,1000000,1,2,3",
	"1,0,5000000,4000000,1000000,0,7,9,4000000,0,0,1000000,2,2",
	"1,0,5000000,4000000,1000000,0,7,9,4000000,0,0,1000000,-1,2",
	"1,0,5000000,4000000,1000000,0,7,9,99000000,0,0,1000000,1,2",
	"1,0,5000000,4000000,1000000,0,7,9,4000000,0,0,1000001,1,2",
	"1,0,5000000,4000000,1000000,0,7,8,4000000,0,0,1000000,1,2",
	"1,0,5000000,4000000,1000000,0,7,-9,4000000,0,0,1000000,1,2",
	"1,0,9007199254740992,0,0,0,0,9,0,0,0,0,0,0",
	"1,0,-9007199254740992,0,0,0,0,9,0,0,0,0,0,0",
	"1,0,0,9007199254740991,9007199254740991,0,0,9,0,0,0,0,0,0",
	"1,0,-0,-0,-0,-0,-0,9,-0,-0,-0,-0,-0,-0",
	"1,0,5e6,0,0,0,0,9,0,0,0,0,0,0",
	"1,0,5.0,0,0,0,0,9,0,0,0,0,0,0",
	"1,0,+5,0,0,0,0,9,0,0,0,0,0,0",
	"1,0, 5,0,0,0,0,9,0,0,0,0,0,0",
	"1,0,0x5,0,0,0,0,9,0,0,0,0,0,0",
	"i1,i0,i5000000,i0,i0,i0,i0,i9,i0,i0,i0,i0,i0,i0",
	"1,0,f5000000,0,0,0,0,9,0,0,0,0,0,0",
	"1,0,n,0,0,0,0,9,0,0,0,0,0,0",
	"1,0,b,a,0,0,0,9,0,0,0,0,0,0",
	"1,0,-9223372036854775808,0,0,0,0,9,0,0,0,0,0,0",
	"1,1,0,0,0,0,0", "1,2,0,0,0,0,0", "1,3,0,0,0,0,0", "2,0,0,0,0,0,0", "1,0,0,0,0,0", "1,0,0,0,0,0,0",
	"1,3,15000000,4000000,1000000,0,7,9,4000000,0,0,1000000,1,2,7,3,20000000,4",
	"1,3,5000000,4000000,1000000,0,7,9,4000000,0,0,1000000,1,2,0,3,20000000,4",
	"1,3,5000000,4000000,1000000,0,7,9,4000000,0,0,1000000,1,2,7,3,4000000,4",
	"1,3,15000000,0,0,0,0,7,3,20000000,4", "1,3,-20000000,0,0,0,0,7,3,20000000,0", "1,3,15000000,0,0,0,0,7,3,20000000,-4",
	"1,0,10000001,0,0,0,0", "1,0,10000000,0,0,0,0", "1,0,0,-1,0,0,0", "1,0,0,0,-1,0,0",
}

func FuzzDecodeAnswer(f *testing.F) {
	for _, s := range seeds {
		f.Add(s, int64(0), int64(4_000_000), int64(1), int64(2))
	}
	f.Add("1,0,0,0,0,0,0,9,5,0,0,0,9223372036854775807,0", int64(1), int64(4), int64(math.MaxInt64), int64(0))
	f.Fuzz(func(t *testing.T, text string, kept, want, first, second int64) {
		m := &Message{
			Limit: Limit{Num: 1, Den: 1, Burst: 10_000_000}, Seq: 9, TTL: time.Second,
			Kept: abs(kept) >> 2, Want: abs(want) >> 2, Rate: abs(kept) >> 3, Burst: abs(want) >> 3,
			Needs: []Need{{Tokens: 1, Count: abs(first)}, {Tokens: 1, Count: abs(second)}},
		}
		a, err := m.Decode(replyOf(text))
		if err != nil {
			refused(t, a, err)
			return
		}
		if a.Seq != 9 || a.Lump < 0 || a.Lump > m.Kept+m.Want || a.Rate < 0 || a.Rate > m.Rate ||
			a.Burst < 0 || a.Burst > m.Burst || a.TTL < 0 || a.TTL > m.TTL {
			t.Errorf("%q became %+v for %+v", text, a, m)
		}
		if len(a.Granted) != 2 || a.Granted[0] < 0 || a.Granted[0] > abs(first) || a.Granted[1] < 0 || a.Granted[1] > abs(second) {
			t.Errorf("%q grants %v of %+v", text, a.Granted, m.Needs)
		}
		sane(t, text, a.Level)
	})
}

func FuzzDecodeLevel(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := decodeLevel(replyOf(text), Limit{Num: 1, Den: 1, Burst: 10_000_000}, false)
		if err != nil {
			refused(t, l, err)
			return
		}
		sane(t, text, l)
	})
}

// refused: an error is of a class that says so, and comes with nothing.
func refused(t *testing.T, v any, err error) {
	t.Helper()
	if c := ClassOf(err); c != Protocol && c != Version && c != Stale {
		t.Errorf("class %v of %v", c, err)
	}
	if !reflect.ValueOf(v).IsZero() {
		t.Errorf("%v and nevertheless %+v", err, v)
	}
}

func sane(t *testing.T, text string, l Level) {
	t.Helper()
	if l.Limit.Num < 1 || l.Limit.Den < 1 || l.Limit.Burst < 1 || l.Limit.Version < 0 {
		t.Errorf("%q is under the limit %+v", text, l.Limit)
	}
	if l.Tokens > l.Limit.Burst || l.Tokens < -l.Limit.Burst || l.Out < 0 || l.LastEnd < 0 || l.Rates < 0 || l.Demand < 0 {
		t.Errorf("%q became %+v", text, l)
	}
}

func abs(n int64) int64 {
	if n < 0 {
		return -(n + 1)
	}
	return n
}

func TestDecodeAnswer(t *testing.T) {
	m := &Message{
		Limit: Limit{Num: 1, Den: 1, Burst: 10_000_000}, Seq: 9, TTL: time.Second, Want: 4_000_000, Rate: 5, Burst: 6,
		Needs: []Need{{Tokens: 1, Count: 1}, {Tokens: 1, Count: 2}},
	}
	a, err := m.Decode(replyOf("1,0,5000000,4000000,1000001,3,7,9,4000000,5,6,1000000,250000,1,1,2"))
	want := Answer{
		Level: Level{Limit: m.Limit, Tokens: 5_000_000, Out: 4_000_000, LastEnd: 1_000_001 * time.Microsecond, Rates: 3, Demand: 7},
		Seq:   9, Lump: 4_000_000, Rate: 5, Burst: 6, TTL: time.Second, Part: 250_000, Lost: true, Granted: []int64{1, 2},
	}
	if err != nil || !reflect.DeepEqual(a, want) {
		t.Errorf("got %+v, %v, want %+v", a, err, want)
	}
	a, err = m.Decode(replyOf("1,3,15000000,4000000,1000001,3,7,9,4000000,5,6,1000000,250000,1,1,2,7,3,20000000,4"))
	want.Limit, want.Tokens = Limit{Num: 7, Den: 3, Burst: 20_000_000, Version: 4}, 15_000_000
	if err != nil || !reflect.DeepEqual(a, want) {
		t.Errorf("got %+v, %v, want %+v", a, err, want)
	}
	for text, class := range map[string]Class{
		"1,1,0,0,0,0,0": Version,
		"1,2,0,0,0,0,0": Stale,
		"1,3,0,0,0,0,0": Protocol,
		"1,4,0,0,0,0,0": Protocol,
		// Under another limit, whose numbers come last: none, impossible ones, a level
		// that does not fit it.
		"1,3,5000000,4000000,1000000,0,7,9,4000000,0,0,1000000,0,0,1,2":                Protocol,
		"1,3,5000000,4000000,1000000,0,7,9,4000000,0,0,1000000,0,0,1,2,0,1,9000000,0":  Protocol,
		"1,3,5000000,4000000,1000000,0,7,9,4000000,0,0,1000000,0,0,1,2,1,0,9000000,0":  Protocol,
		"1,3,5000000,4000000,1000000,0,7,9,4000000,0,0,1000000,0,0,1,2,1,1,0,0":        Protocol,
		"1,3,5000000,4000000,1000000,0,7,9,4000000,0,0,1000000,0,0,1,2,1,1,9000000,-1": Protocol,
		"1,3,5000000,4000000,1000000,0,7,9,4000000,0,0,1000000,0,0,1,2,1,1,4000000,0":  Protocol,
		"1,0,5000000,4000000,1000000,0,7,9,4000000,0,0,1000000,0,0,1,2,1,1,9000000,0":  Protocol, // nobody said so
		"2,0,5000000,4000000,1000000,0,7,9,4000000,0,0,1000000,0,0,1,2":                Protocol,
		"1,0,5000000,4000000,1000000,0,7,9,4000000,0,0,1000000,0,0,1":                  Protocol,
		"1,0,5000000,4000000,1000000,0,7,9,4000000,0,0,1000000,0,0,2,2":                Protocol,
		"1,0,5000000,4000000,1000000,0,7,9,4000000,0,0,1000000,0,0,1,-1":               Protocol,
		"1,0,5000000,4000000,1000000,0,7,8,4000000,0,0,1000000,0,0,1,2":                Protocol,
		"1,0,5000000,4000000,1000000,0,7,9,4000001,0,0,1000000,0,0,1,2":                Protocol,
		"1,0,5000000,4000000,1000000,0,7,9,4000000,0,0,1000001,0,0,1,2":                Protocol,
		"1,0,5000000,4000000,1000000,0,7,9,4000000,6,0,1000000,0,0,1,2":                Protocol,
		"1,0,5000000,4000000,1000000,0,7,9,4000000,-1,0,1000000,0,0,1,2":               Protocol,
		"1,0,5000000,4000000,1000000,0,7,9,4000000,0,7,1000000,0,0,1,2":                Protocol,
		"1,0,5000000,4000000,1000000,0,7,9,4000000,0,-1,1000000,0,0,1,2":               Protocol,
		"1,0,10000001,0,0,0,0,9,0,0,0,0,0,0,0,0":                                       Protocol,
		"1,0,5000000,0,0,0,0,9,0,0,0,0,0,0,i1,0":                                       Protocol,
		"1,0,9007199254740992,0,0,0,0,9,0,0,0,0,0,0,0,0":                               Protocol,
		"1,0,5000000,4000000,1000000,0,7,9,4000000,0,0,1000000,1000001,0,1,2":          Protocol,
		"1,0,5000000,4000000,1000000,0,7,9,4000000,0,0,1000000,-1,0,1,2":               Protocol,
		"nil": Protocol, "string": Protocol, "int": Protocol, "map": Protocol, "empty": Protocol,
	} {
		if a, err := m.Decode(replyOf(text)); ClassOf(err) != class || !reflect.ValueOf(a).IsZero() {
			t.Errorf("%q: %+v, %v, want class %v", text, a, err, class)
		}
	}
}

func TestDecodeLevel(t *testing.T) {
	l := Limit{Num: 1, Den: 1, Burst: 10_000_000}
	got, err := decodeLevel(replyOf("1,0,-5000000,20000000,1000001,3,7"), l, false)
	want := Level{Limit: l, Tokens: -5_000_000, Out: 20_000_000, LastEnd: 1_000_001 * time.Microsecond, Rates: 3, Demand: 7}
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	// The limit that applies, if it is another one than was asked for.
	got, err = decodeLevel(replyOf("1,3,15000000,20000000,1000001,3,7,7,3,20000000,4"), l, false)
	want.Limit, want.Tokens = Limit{Num: 7, Den: 3, Burst: 20_000_000, Version: 4}, 15_000_000
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	got, err = decodeLevel(replyOf("1,3,-20000000,0,0,0,0,1,1,20000000,0"), l, false)
	want = Level{Limit: Limit{Num: 1, Den: 1, Burst: 20_000_000}, Tokens: -20_000_000}
	if err != nil || got != want {
		t.Errorf("a debt of the whole burst: got %+v, %v, want %+v", got, err, want)
	}
	for _, text := range []string{
		"1,3,1,0,0,0,0", "1,3,1,0,0,0,0,1,1,9000000", "1,3,1,0,0,0,0,1,1,9000000,0,0", "1,0,1,0,0,0,0,1,1,9000000,0",
		"1,3,1,0,0,0,0,0,1,9000000,0", "1,3,1,0,0,0,0,-1,1,9000000,0", "1,3,1,0,0,0,0,1,0,9000000,0", "1,3,1,0,0,0,0,1,1,0,0",
		"1,3,1,0,0,0,0,1,1,9000000,-1", "1,3,9000001,0,0,0,0,1,1,9000000,0", "1,3,-9000001,0,0,0,0,1,1,9000000,0",
		"1,3,1,0,0,0,0,1,1,9007199254740992,0", "1,3,1,-1,0,0,0,1,1,9000000,0",
		"1,0,1,0,0,0,0,0", "1,0,1,0,0,0", "1,0,-10000001,0,0,0,0", "1,0,1,-1,0,0,0", "1,0,1,0,-1,0,0", "1,0,1,0,0,-1,0", "1,0,1,0,0,0,-1",
		"1,0,1,0,9007199254740992,0,0", "1,0,1,0,0,0,9007199254740992", "1,0,1,9007199254740993,0,0,0",
	} {
		if got, err := decodeLevel(replyOf(text), l, false); ClassOf(err) != Protocol || got != (Level{}) {
			t.Errorf("%q: %+v, %v, want class protocol", text, got, err)
		}
	}
}
