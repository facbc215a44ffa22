package luahost

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
)

// A hash is what is stored under a key. It is never empty there.
type hash map[string]string

// whole is the number of fields up to which a scan returns the whole hash.
const whole = 512

// scan returns a page of fields and the cursor of the next one; 0 after the last.
// A small hash comes as a whole, in the order of its names. A large one comes in
// the order of a digest of the names, and the cursor is the digest to go on with.
// So a field that is there throughout a scan is returned, whatever is added and
// removed in the meantime, as Redis promises.
func (f hash) scan(cursor uint32, count int) (page []string, next uint32) {
	if len(f) <= whole {
		return slices.Sorted(maps.Keys(f)), 0
	}
	type place struct {
		digest uint32
		name   string
	}
	var rest []place
	for name := range f {
		if d := digest(name); d >= cursor {
			rest = append(rest, place{d, name})
		}
	}
	slices.SortFunc(rest, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.digest, b.digest), cmp.Compare(a.name, b.name))
	})
	for i, p := range rest {
		// Names with one digest stay together, and no page starts at cursor 0.
		if i >= count && p.digest != rest[i-1].digest {
			return page, p.digest
		}
		page = append(page, p.name)
	}
	return page, 0
}

// digest is FNV-1a, whose low bits are mixed once more.
func digest(name string) uint32 {
	d := uint32(2166136261)
	for i := range len(name) {
		d = (d ^ uint32(name[i])) * 16777619
	}
	return d ^ d>>16
}

// parseCursor reads a cursor; false if it is none.
func parseCursor(text string) (uint32, bool) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, false
	}
	// What lies beyond was never given out: nothing is behind it.
	return uint32(min(n, 1<<32-1)), true
}
