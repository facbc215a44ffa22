package luahost

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/resilient-go/limiter/lua"
)

// most is more pages than any scan of the tests has.
const most = 2000

func hashOf(n int) hash {
	f := hash{}
	for i := range n {
		f[fmt.Sprintf("h%d", i)] = "x"
	}
	return f
}

func TestASmallHashComesAsAWhole(t *testing.T) {
	for _, n := range []int{0, 1, 40, whole} {
		f := hashOf(n)
		page, next := f.scan(0, 32)
		if want := slices.Sorted(maps.Keys(f)); next != 0 || !slices.Equal(page, want) {
			t.Errorf("%d fields come as %q and the cursor %d", n, page, next)
		}
	}
}

func TestALargeHashComesInPages(t *testing.T) {
	f := hashOf(1000)
	var all []string
	pages, cursor := 0, uint32(0)
	for range most {
		page, next := f.scan(cursor, 32)
		again, nextAgain := maps.Clone(f).scan(cursor, 32)
		if !slices.Equal(page, again) || next != nextAgain {
			t.Fatalf("the page at %d is another one the second time", cursor)
		}
		if next != 0 && len(page) != 32 {
			t.Errorf("a page has %d fields, want 32", len(page))
		}
		pages++
		all = append(all, page...)
		if cursor = next; cursor == 0 {
			break
		}
	}
	slices.Sort(all)
	if pages != 32 || !slices.Equal(all, slices.Sorted(maps.Keys(f))) {
		t.Errorf("%d pages with %d fields, want 32 with each of the 1000 once", pages, len(all))
	}
	if page, next := f.scan(1<<32-1, 32); len(page) != 0 || next != 0 {
		t.Errorf("behind all fields come %q and the cursor %d", page, next)
	}
}

func TestAScanMeetsWhatStays(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 2))
		f := hashOf(600 + r.IntN(400))
		stays := maps.Clone(f)
		met := map[string]bool{}
		cursor := uint32(0)
		for range most {
			page, next := f.scan(cursor, 1+r.IntN(40))
			for _, name := range page {
				met[name] = true
			}
			if cursor = next; cursor == 0 {
				break
			}
			for range r.IntN(60) { // it may become a small one meanwhile
				name := fmt.Sprintf("h%d", r.IntN(1000))
				delete(f, name)
				delete(stays, name)
				if r.IntN(3) == 0 {
					f[fmt.Sprintf("n%d", r.IntN(1000))] = "x"
				}
			}
		}
		if cursor != 0 {
			t.Fatalf("seed %d: the scan does not end", seed)
		}
		for name := range stays {
			if !met[name] {
				t.Fatalf("seed %d: %s was there all the time and never came", seed, name)
			}
		}
	}
}

// Fields whose names have one digest come together, because no cursor lies between
// them.
func TestAScanKeepsTwinsTogether(t *testing.T) {
	f, byDigest := hashOf(600), map[uint32]string{}
	twins := [2]string{}
	for i := 0; twins[0] == ""; i++ {
		name := fmt.Sprintf("twin%d", i)
		if other, ok := byDigest[digest(name)]; ok {
			twins = [2]string{other, name}
		}
		byDigest[digest(name)] = name
	}
	f[twins[0]], f[twins[1]] = "x", "x"
	cursor, met := uint32(0), 0
	for range most {
		page, next := f.scan(cursor, 1)
		met += len(page)
		want := 1
		if slices.Contains(page, twins[0]) || slices.Contains(page, twins[1]) {
			want = 2
		}
		if len(page) != want {
			t.Errorf("a page of %q, want %d", page, want)
		}
		if cursor = next; cursor == 0 {
			break
		}
	}
	if met != 602 {
		t.Errorf("%d fields came, want 602", met)
	}
}

// Holders that vanish, far more than a page, are forgotten at 16 a message.
func TestManyLeasesAreSwept(t *testing.T) {
	now := origin
	h := New(func() int64 { return now })
	l := limit{num: 1000, den: 1, burst: 1_000_000 * unit}
	seq := int64(0)
	send := func(id string, ttl int64) {
		t.Helper()
		seq++
		m := message{id: id, seq: seq, limit: l, ttl: ttl, want: unit}
		if _, err := h.Eval(lua.Acquire, key, m.args()); err != nil {
			t.Fatal(err)
		}
	}
	leases := func() (n int) {
		for name := range h.Fields(key) {
			if strings.HasPrefix(name, "h") {
				n++
			}
		}
		return n
	}
	for i := range 1000 {
		send(fmt.Sprintf("gone%d", i), 1_000_000)
	}
	if n := leases(); n != 1000 {
		t.Fatalf("%d leases, want 1000", n)
	}
	now += 2_000_000 - 1
	send("stays", 30_000_000) // all the others have ended: the key begins anew
	if n := leases(); n != 1 {
		t.Fatalf("%d leases, want 1", n)
	}
	for i := range 1000 {
		send(fmt.Sprintf("gone%d", i), 1_000_000)
	}
	now += 2_000_000
	left, rounds := leases(), 0
	for ; left > 1 && rounds < 1000; rounds++ {
		send("stays", 30_000_000)
		before := left
		if left = leases(); before-left > 16 {
			t.Fatalf("a message swept %d leases, want at most 16", before-left)
		}
		now += 10_000
	}
	if left != 1 || rounds < 1000/16 {
		t.Errorf("after %d messages there are %d leases, want 1", rounds, left)
	}
}
