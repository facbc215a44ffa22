package luahost

import (
	"strconv"
	"testing"

	"github.com/resilient-go/limiter/lua"
)

// BenchmarkAcquire is one message of a holder to a key on which so many others
// hold leases, a millisecond after the message before.
func BenchmarkAcquire(b *testing.B) {
	for _, others := range []int{0, 8, 100} {
		b.Run(strconv.Itoa(others)+" other holders", func(b *testing.B) {
			now := origin
			h := New(func() int64 { return now })
			l := limit{num: 1000, den: 1, burst: 1000 * unit}
			seq := int64(0)
			send := func(id string) {
				seq++
				m := message{id: id, seq: seq, limit: l, ttl: 5_000_000, demand: 3 * unit, want: 2 * unit, most: 9 * unit, burst: 9 * unit}
				m.needs = []need{{tokens: unit, count: 1, queue: true}}
				if _, err := h.Eval(lua.Acquire, "rl:{k}", m.args()); err != nil {
					b.Fatal(err)
				}
			}
			for i := range others {
				send("other" + strconv.Itoa(i))
			}
			b.ReportAllocs()
			for b.Loop() {
				now += 1000
				send("me")
			}
		})
	}
}

// BenchmarkNew is what a short simulation pays for its Redis.
func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		New(func() int64 { return origin })
	}
}
