package remote_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/resilient-go/limiter/remote"
)

func TestKey(t *testing.T) {
	long := strings.Repeat("k", remote.MaxKeyLen+1)
	sum := sha256.Sum256([]byte(long))
	for _, c := range []struct{ name, key, want string }{
		{"api", "user:10001", "rl:{api:user:10001}"},
		{"100/s burst 20", "10.0.0.1", "rl:{100/s burst 20:10.0.0.1}"},
		{"a:b", "c", "rl:{a%3Ab:c}"},
		{"a", "b:c", "rl:{a:b:c}"},
		{"", "", "rl:{:}"},
		{"a", "}", "rl:{a:%7D}"},
		{"a", "{}", "rl:{a:%7B%7D}"},
		{"a", "%7D", "rl:{a:%257D}"},
		{"a", "#1", "rl:{a:%231}"},
		{"a", "\x00\n\r\x1f\x7f ", "rl:{a:%00%0A%0D%1F%7F }"},
		{"ä", "\xff\x80", "rl:{ä:\xff\x80}"},
		{"a", long[1:], "rl:{a:" + long[1:] + "}"},
		{"a", long, "rl:{a:#" + hex.EncodeToString(sum[:]) + "}"},
	} {
		if got := remote.Key(c.name, c.key); got != c.want {
			t.Errorf("Key(%q, %.40q) = %q, want %q", c.name, c.key, got, c.want)
		}
	}
}

// wellFormed: one hash tag, which is all that a Cluster hashes, and nothing in it
// that could end a line or a tag.
func wellFormed(t interface {
	Helper()
	Errorf(string, ...any)
}, k string,
) {
	t.Helper()
	inner, found := strings.CutPrefix(k, "rl:{")
	inner, closed := strings.CutSuffix(inner, "}")
	if !found || !closed || inner == "" || strings.ContainsAny(inner, "{}") {
		t.Errorf("%q has no well-formed hash tag", k)
	}
	if strings.ContainsFunc(k, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		t.Errorf("%q has control characters", k)
	}
}

func FuzzKey(f *testing.F) {
	f.Add("a", "b", "a:b", "")
	f.Add("a", "b:c", "a:b", "c")
	f.Add("a", "}", "a", "%7D")
	f.Add("a}", "{b", "a", "}{b")
	f.Add("a%3Ab", "c", "a:b", "c")
	f.Add("", "#", "", strings.Repeat("x", 300))
	f.Fuzz(func(t *testing.T, name1, key1, name2, key2 string) {
		k1, k2 := remote.Key(name1, key1), remote.Key(name2, key2)
		if same := name1 == name2 && key1 == key2; (k1 == k2) != same {
			t.Errorf("Key(%q, %q) = %q and Key(%q, %q) = %q", name1, key1, k1, name2, key2, k2)
		}
		wellFormed(t, k1)
		wellFormed(t, k2)
	})
}

func TestDifferentPairsHaveDifferentKeys(t *testing.T) {
	// Few characters, so that pairs come close to each other.
	text := rapid.Custom(func(t *rapid.T) string {
		s := rapid.StringOfN(rapid.SampledFrom([]rune{'a', ':', '{', '}', '%', '#', '3', 'A', '\n', 0}), 0, 6, -1).Draw(t, "text")
		if rapid.IntRange(0, 9).Draw(t, "long") == 0 {
			s += strings.Repeat("a", remote.MaxKeyLen-2)
		}
		return s
	})
	rapid.Check(t, func(t *rapid.T) {
		seen := map[string][2]string{}
		for range 100 {
			pair := [2]string{text.Draw(t, "name"), text.Draw(t, "key")}
			k := remote.Key(pair[0], pair[1])
			wellFormed(t, k)
			if other, taken := seen[k]; taken && other != pair {
				t.Fatalf("%q and %q are both %q", other, pair, k)
			}
			seen[k] = pair
			if len(pair[1]) > remote.MaxKeyLen && len(k) > len("rl:{:#}")+3*len(pair[0])+64 {
				t.Fatalf("a key of %d bytes became one of %d", len(pair[1]), len(k))
			}
		}
	})
}
