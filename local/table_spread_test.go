package local_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/resilient-go/limiter/local"
)

// Large tables spread their keys, so that one part may be full before the
// others. Together they come up to the limit and never pass it.
func TestLargeTablesComeUpToTheirLimit(t *testing.T) {
	for _, limit := range []int{128, 129, 255, 1000, 4095, 4096, many(10_001, 100_000)} {
		table := local.NewTable[*thing](limit)
		for i := range limit {
			stayer(table, fmt.Sprint("first ", i))
		}
		if got := table.Len(); got < limit*4/5 {
			t.Errorf("limit %d: as many keys found room for %d", limit, got)
		}
		for i := range limit {
			stayer(table, fmt.Sprint("then ", i))
		}
		if got := table.Len(); got != limit {
			t.Errorf("limit %d: twice as many keys found room for %d", limit, got)
		}
	}
}

func TestTableBucketIsSteadyAndEven(t *testing.T) {
	const buckets, keys = 64, 64_000
	a, b := local.NewTable[*thing](1000), local.NewTable[*thing](1000)
	var count [buckets]int
	same := 0
	for i := range keys {
		key := fmt.Sprint("user:", i)
		n := a.Bucket(key, buckets)
		if n != a.Bucket(key, buckets) {
			t.Fatalf("%s is now here, now there", key)
		}
		count[n]++ // panics beyond the range
		if n == b.Bucket(key, buckets) {
			same++
		}
	}
	for i, n := range count {
		if n < 800 || n > 1200 {
			t.Errorf("bucket %d has %d of %d keys, want about 1,000", i, n, keys)
		}
	}
	if same > 2000 {
		t.Errorf("two tables agree on the buckets of %d keys: they can be foreseen", same)
	}
}

// Keys cannot be chosen so that they crowd one part of the table.
func TestTableIsNotCrowdedByKeysThatLookAlike(t *testing.T) {
	const limit = 8192
	for name, key := range map[string]func(int) string{
		"same start": func(i int) string { return strings.Repeat("a", 64) + fmt.Sprint(i) },
		"same end":   func(i int) string { return fmt.Sprint(i) + strings.Repeat("a", 64) },
		"lengths":    func(i int) string { return strings.Repeat("\x00", i) },
		"bits": func(i int) string {
			return strings.Map(func(r rune) rune { return 'a' + r - '0' }, fmt.Sprintf("%064b", i))
		},
	} {
		table := local.NewTable[*thing](limit)
		for i := range limit {
			stayer(table, key(i))
		}
		if got := table.Len(); got < limit*9/10 {
			t.Errorf("%s: of %d keys %d found room", name, limit, got)
		}
	}
}
