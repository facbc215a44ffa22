package remote

import (
	"reflect"
	"testing"
	"time"

	"github.com/resilient-go/limiter/lua"
)

// The arguments are the contract of acquire.lua, by position.
func TestMessageArguments(t *testing.T) {
	m := &Message{
		Limit: Limit{Num: 7, Den: 3, Burst: 9_007_199_254, Version: 5},
		Seq:   1<<53 - 1, TTL: 1500*time.Millisecond + 999*time.Nanosecond,
		Kept: 11, Returned: 12, Spent: 13, Demand: 14, Want: 1_000_000_000_000_000, Least: 16,
		Rate: 17, Burst: 18, Charge: -19, Seen: 20, Known: true, Live: 21, Peak: 22, Reserve: 200,
		Needs: []Need{
			{Tokens: 1_000_000, Count: 2},
			{Tokens: 3, Count: 4, Queue: true},
			{Tokens: 5, Count: 6, Low: true},
			{Tokens: 7, Count: 8, Book: true},
			{Tokens: 9, Count: 10, Hold: true},
			{Tokens: 11, Count: 12, Queue: true, Low: true, Book: true, Hold: true},
		},
	}
	want := []any{
		"1", "holder", "9007199254740991", "7", "3", "9007199254", "5", "1500000",
		"11", "17", "18", "12", "13", "14", "1000000000000000", "16",
		"-19", "20", "21", "22",
		"200",
		"1000000", "2", "0", "3", "4", "1", "5", "6", "2", "7", "8", "4", "9", "10", "8", "11", "12", "15",
	}
	if got := m.Args("holder"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	// What was not said, and what cannot be.
	for _, m := range []*Message{{}, {Live: 1, Peak: 1}, {Seen: 5}, {Peak: -3}} {
		if got, want := m.Args("h")[16:], []any{"0", "-1", "1", "1", "0"}; !reflect.DeepEqual(got, want) {
			t.Errorf("%+v: got %q, want %q", m, got, want)
		}
	}
	if got, want := (&Message{Known: true, Seen: -4, Live: 3, Peak: 2}).Args("h")[17:], []any{"0", "3", "3", "0"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := m.Limit.args(lua.TokenBucket, lua.Peek); !reflect.DeepEqual(got, []any{"1", "7", "3", "9007199254", "5"}) {
		t.Errorf("got %q", got)
	}
}
