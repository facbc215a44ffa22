package lua_test

import (
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/lua"
)

const window = 30 * time.Second

// announced has an instance announce itself and gives how many are there, and were.
func (w *world) announced(id string) string { return w.says(id, false) }

// leaves has an instance leave.
func (w *world) leaves(id string) string { return w.says(id, true) }

func (w *world) says(id string, leaves bool) string {
	w.Helper()
	bye := 0
	if leaves {
		bye = 1
	}
	reply, err := w.eval(lua.Announce, w.key, []any{1, "instance " + id, window.Milliseconds(), bye})
	if err != nil {
		w.Fatalf("announce: %v", err)
	}
	v := reply.([]any)
	if len(v) != 4 || v[0] != "1" || v[1] != "0" {
		w.Fatalf("reply %v, want format 1, status 0 and two numbers", v)
	}
	if ttl := w.ttl(w.key); ttl < 86_400_000 {
		w.Fatalf("the key lives for %d ms", ttl)
	}
	for i := range v {
		if _, err := strconv.ParseInt(fmt.Sprint(v[i]), 10, 64); err != nil {
			w.Fatalf("reply %v, want integers as strings", v)
		}
	}
	return fmt.Sprintf("%v of %v", v[2], v[3])
}

// fleetFor has instances announce themselves each second for so long. It gives
// what the last one heard.
func (w *world) fleetFor(d time.Duration, ids ...string) (last string) {
	w.Helper()
	for range d / time.Second {
		for _, id := range ids {
			last = w.announced(id)
			w.pass(time.Second / time.Duration(len(ids)))
		}
	}
	return last
}

// hears fails unless an instance heard that.
func (w *world) hears(got, want string) {
	w.Helper()
	if got != want {
		w.Fatalf("%s, want %s", got, want)
	}
}

// fleets: how instances are counted.
var fleets = []scenario{
	{"everyone is counted from the first word on", func(w *world) {
		w.hears(w.announced("a"), "1 of 1")
		w.hears(w.announced("b"), "2 of 2")
		w.hears(w.announced("a"), "2 of 2")
		w.hears(w.announced("c"), "3 of 3")
		w.hears(w.fleetFor(60*time.Second, "a", "b", "c"), "3 of 3")
	}},
	{"one that is silent is missed for the window", func(w *world) {
		w.fleetFor(10*time.Second, "a", "b", "c", "d")
		w.hears(w.fleetFor(2*time.Second, "a", "b", "c"), "4 of 4")
		w.hears(w.fleetFor(2*time.Second, "a", "b", "c"), "3 of 4")
		w.hears(w.fleetFor(24*time.Second, "a", "b", "c"), "3 of 4")
		w.hears(w.fleetFor(8*time.Second, "a", "b", "c"), "3 of 3")
	}},
	{"one that leaves is not", func(w *world) {
		w.fleetFor(10*time.Second, "a", "b", "c")
		w.hears(w.leaves("b"), "2 of 2")
		w.hears(w.leaves("b"), "2 of 2") // twice is once
		w.hears(w.fleetFor(10*time.Second, "a", "c"), "2 of 2")
	}},
	{"nor one that leaves young", func(w *world) {
		w.fleetFor(10*time.Second, "a", "c")
		w.hears(w.announced("b"), "3 of 3")
		w.hears(w.leaves("b"), "2 of 2")
	}},
	{"one that was cut off and comes back is one", func(w *world) {
		w.fleetFor(10*time.Second, "a", "b")
		w.hears(w.fleetFor(10*time.Second, "a"), "1 of 2")
		w.hears(w.announced("b"), "2 of 2")
		w.hears(w.fleetFor(40*time.Second, "a", "b"), "2 of 2")
	}},
	{"a fleet that is killed and replaced is never counted twice for long", func(w *world) {
		w.fleetFor(10*time.Second, "a", "b", "c")
		w.announced("d")
		w.announced("e")
		w.hears(w.announced("f"), "6 of 6") // who is gone shows later
		w.fleetFor(2*time.Second, "d", "e", "f")
		w.hears(w.fleetFor(time.Second, "d", "e", "f"), "3 of 3")
		w.hears(w.fleetFor(40*time.Second, "d", "e", "f"), "3 of 3")
	}},
	{"nor one that is replaced one by one", func(w *world) {
		ids := []string{"a", "b", "c"}
		w.fleetFor(10*time.Second, ids...)
		for i := range ids {
			ids[i] += "2"
			w.fleetFor(5*time.Second, ids...)
		}
		w.hears(w.fleetFor(time.Second, ids...), "3 of 3")
	}},
	{"a fleet that grows is counted at its new size", func(w *world) {
		w.fleetFor(10*time.Second, "a", "b")
		w.hears(w.fleetFor(10*time.Second, "a", "b", "c", "d"), "4 of 4")
		w.hears(w.fleetFor(5*time.Second, "a", "b"), "2 of 4")
	}},
	{"steps of the clock change nothing", func(w *world) {
		w.fleetFor(10*time.Second, "a", "b", "c")
		for _, step := range []time.Duration{time.Hour, -time.Hour, 10 * time.Second, -10 * time.Second, 23 * time.Hour, -24 * time.Hour, 2 * time.Second} {
			w.now += step.Microseconds()
			w.set(w.now)
			w.hears(w.announced("a"), "3 of 3")
			w.hears(w.announced("b"), "3 of 3")
			w.hears(w.announced("c"), "3 of 3")
			w.hears(w.fleetFor(3*time.Second, "a", "b", "c"), "3 of 3")
		}
	}},
	{"an outage of all ages nobody", func(w *world) {
		w.fleetFor(10*time.Second, "a", "b", "c")
		w.pass(50 * time.Second)
		w.hears(w.announced("b"), "3 of 3")
	}},
	{"a thousand cost no more than their names", func(w *world) {
		n := int(w.many(1000))
		ids := make([]string, n)
		for i := range ids {
			ids[i] = fmt.Sprint("instance", i)
			w.announced(ids[i])
		}
		w.hears(w.announced(ids[0]), fmt.Sprintf("%d of %d", n, n))
		if got := w.client().ZCard(w.Context(), w.key).Val(); got > int64(n)+10 {
			w.Fatalf("%d members for %d instances", got, n)
		}
		for range 8 {
			w.pass(2 * time.Second)
			w.announced(ids[0])
		}
		if got := w.client().ZCard(w.Context(), w.key).Val(); got > 20 {
			w.Fatalf("%d members are left of those that are gone", got)
		}
	}},
	{"a newer state is left alone", func(w *world) {
		w.announced("a")
		w.client().ZAdd(w.Context(), w.key, redis.Z{Score: -3, Member: "v"})
		before := w.client().ZRangeWithScores(w.Context(), w.key, 0, -1).Val()
		reply, err := w.eval(lua.Announce, w.key, []any{1, "b", 30_000, 0})
		if err != nil || fmt.Sprint(reply) != "[1 1 0 0]" {
			w.Fatalf("%v, %v, want status 1", reply, err)
		}
		if after := w.client().ZRangeWithScores(w.Context(), w.key, 0, -1).Val(); fmt.Sprint(after) != fmt.Sprint(before) {
			w.Fatalf("%v became %v", before, after)
		}
	}},
	{"wrong arguments change nothing", func(w *world) {
		for _, args := range [][]any{{1, "a", 30_000}, {1, "a", "x", 0}, {1, "a", 30_000, 0, 0}} {
			w.fails(lua.Announce, args)
		}
	}},
}
