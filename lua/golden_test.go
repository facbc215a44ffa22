package lua_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The file holds the answers and states of a fixed course of messages. Both
// servers must give exactly these: other servers, and the clients of today's
// format, can be held against them.
const golden = "testdata/golden.txt"

var update = flag.Bool("update", false, "rewrite "+golden+" with what miniredis answers")

func TestGoldenAnswers(t *testing.T) {
	if *update {
		synctest.Test(t, func(t *testing.T) {
			if err := os.WriteFile(golden, []byte(course(newWorld(t, newMini(t), "golden"))), 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	check := func(t *testing.T, got string) {
		t.Helper()
		lines, wanted := strings.Split(got, "\n"), strings.Split(string(want), "\n")
		for i := range lines {
			if i >= len(wanted) || lines[i] != wanted[i] {
				t.Fatalf("line %d of %s is\n%s\nand the server gives\n%s", i+1, golden, at(wanted, i), lines[i])
			}
		}
		if len(lines) != len(wanted) {
			t.Fatalf("%d lines, want %d", len(lines), len(wanted))
		}
	}
	t.Run("miniredis", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { check(t, course(newWorld(t, newMini(t), "golden"))) })
	})
	t.Run("redis-server", func(t *testing.T) { check(t, course(newWorld(t, newReal(t), "golden"))) })
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(the end)"
}

// course sends messages of many kinds and writes down what comes of them, which
// must be what exact arithmetic says.
func course(w *world) string {
	var b strings.Builder
	var r *reference
	note := func(what string, a, want answer) {
		if !same(a, want) {
			w.Fatalf("%s: the script says %+v, the reference %+v", what, a, want)
		}
		under := ""
		if a.status == other {
			under = fmt.Sprintf(" under %d/%d burst %d version %d", a.applies.num, a.applies.den, a.applies.burst, a.applies.version)
		}
		fmt.Fprintf(&b, "%s: status %d tokens %d out %d end %d demand %d seq %d lump %d ttl %d granted %v%s\n",
			what, a.status, a.tokens, a.out, a.lastEnd, a.demand, a.seq, a.lump, a.ttl, a.granted, under)
		state := w.state()
		for _, field := range slices.Sorted(maps.Keys(state)) {
			fmt.Fprintf(&b, " %s=%s;", field, state[field])
		}
		fmt.Fprintf(&b, " lives %d ms\n", w.ttl(w.key))
	}
	acquire := func(what string, m message) answer {
		if w.ttl(w.key) == -2 {
			r = newReference(m.limit, w.now)
		}
		var want answer
		r, want = r.acquire(m, w.now)
		a := w.acquire(m)
		note(what, a, want)
		return a
	}
	peek := func(what string, l limit) { note(what, w.peek(l), r.peek(l, w.now)) }
	reset := func(what string, l limit) {
		var want answer
		r, want = r.reset(l, w.now)
		note(what, w.reset(l), want)
	}
	seq := int64(0)
	for i, l := range []limit{
		per(7, 3*time.Second, 70), per(100, time.Second, 100), per(1, 366*24*time.Hour, 142), per(1_000_000_000, time.Second, 1_000_000_000),
	} {
		fmt.Fprintf(&b, "limit %d/%d burst %d\n", l.num, l.den, l.burst)
		l.version = 3 + int64(i)
		for _, us := range []int64{0, 1, 333_333, 500_001, 700_000, 1_200_000, -2_000_000, 40_000_000} {
			w.move(us)
			seq++
			m := lump(l, "a", seq, 9)
			m.needs = []need{{n: 3, count: 2}, {n: 5, count: 3, queue: true}, {n: 1, count: 1}}
			a := acquire(fmt.Sprintf("after %d us, a", us), m)
			m = lump(l, "b", seq, 4)
			m.kept, m.spent, m.returned, m.demand = a.lump/3, 1, a.lump/4, 12_345_678
			acquire("b", m)
			m.seq--
			acquire("b, late", m)
			peek("peek", l)
		}
		reset("reset", l)
	}
	// An instance with an older limit: alone for as long as its message says, it has
	// its way until somebody asks for the newer one.
	older, newer := per(50, time.Second, 20), per(100, time.Second, 40)
	older.version, newer.version = 7, 8
	acquire("newer", ask(newer, 10, 1))
	for _, us := range []int64{0, 400_000, 599_999, 1} {
		w.move(us)
		peek("older, peek", older)
		acquire(fmt.Sprintf("older after %d us", us), ask(older, 3, 1))
	}
	peek("newer, peek", newer)
	reset("older, reset", older)
	acquire("newer", ask(newer, 1, 1))
	return b.String()
}
