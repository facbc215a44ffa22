package remote

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// The reply of an algorithm that tells the time is read by position, and nothing that
// its scripts cannot say is taken.
func TestTimedReplies(t *testing.T) {
	m := &Message{
		Limit: Limit{Num: 10, Den: 1, Burst: 10_000_000}, Seq: 9, TTL: time.Second, Want: 4_000_000,
		Needs: []Need{{Tokens: 1_000_000, Count: 2}, {Tokens: 5_000_000, Count: 3}},
	}
	got, err := m.decode(replyOf("1,0,5000000,4000000,900000,0,0,9,4000000,0,0,900000,0,1,2,1,0,700000,800000"), true, 0)
	want := Answer{
		Level: Level{Limit: m.Limit, Tokens: 5_000_000, Out: 4_000_000, LastEnd: 900 * time.Millisecond, Timed: true, Reset: 800 * time.Millisecond},
		Seq:   9, Lump: 4_000_000, TTL: 900 * time.Millisecond, Lost: true, Granted: []int64{2, 1}, Fits: []int64{0, 700_000}, Tiers: []int64{},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	got, err = m.decode(replyOf("1,3,5000000,0,0,0,0,9,0,0,0,0,0,0,2,3,0,0,800000,7,3,20000000,4"), true, 0)
	if applies := (Limit{Num: 7, Den: 3, Burst: 20_000_000, Version: 4}); err != nil || got.Limit != applies || got.Reset != 800*time.Millisecond {
		t.Errorf("under another limit: %+v, %v", got, err)
	}
	got, err = m.decode(replyOf("1,0,5000000,0,0,0,0,9,0,0,0,0,0,0,2,3,0,0,800000,7000000,-8000000"), true, 2)
	if err != nil || !reflect.DeepEqual(got.Tiers, []int64{7_000_000, -8_000_000}) || got.Reset != 800*time.Millisecond {
		t.Errorf("with further tiers: %+v, %v", got, err)
	}
	for _, text := range []string{
		"1,0,5000000,0,0,0,0,9,0,0,0,0,0,0,2,1",                      // that of a bucket
		"1,0,5000000,0,0,0,0,9,0,0,0,0,0,0,2,1,0,700000",             // no time until all is free
		"1,0,5000000,0,0,0,0,9,0,0,0,0,0,0,2,1,0,0,800000",           // refused, and it fits now
		"1,0,5000000,0,0,0,0,9,0,0,0,0,0,0,2,1,0,-1,800000",          // it fitted
		"1,0,5000000,0,0,0,0,9,0,0,0,0,0,0,2,3,0,0,-1",               // all was free
		"1,0,5000000,0,0,0,0,9,0,0,0,0,0,0,2,3,0,0,9007199254740991", // beyond what a Duration holds
		"1,0,5000000,0,0,0,0,9,0,0,0,0,0,0,2,3,0,0,800000,1",
	} {
		if got, err := m.decode(replyOf(text), true, 0); err == nil || !strings.Contains(err.Error(), "protocol") && ClassOf(err) != Protocol {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	level, err := decodeLevel(replyOf("1,0,0,0,0,0,0,700000,800000"), m.Limit, true)
	if want := (Level{Limit: m.Limit, Timed: true, Fits: 700 * time.Millisecond, Reset: 800 * time.Millisecond}); err != nil || level != want {
		t.Errorf("got %+v, %v, want %+v", level, err, want)
	}
	for _, text := range []string{"1,0,0,0,0,0,0", "1,0,0,0,0,0,0,1", "1,0,0,0,0,0,0,-1,1", "1,0,0,0,0,0,0,1,-1", "1,0,0,0,0,0,0,1,1,1"} {
		if got, err := decodeLevel(replyOf(text), m.Limit, true); err == nil {
			t.Errorf("%s: %+v", text, got)
		}
	}
}
