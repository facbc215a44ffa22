package remote

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// MaxKeyLen is the longest user key, in bytes, that is stored as it is. A
// longer one is stored by its SHA-256.
const MaxKeyLen = 256

// Key names the bucket of a user's key under a limiter's name:
//
//	rl:{name:key}
//
// The braces are the hash tag of Redis Cluster, so that everything that belongs
// to one bucket lives on one node. Characters with a meaning here are escaped,
// which keeps different pairs of name and key apart whatever they contain.
func Key(name, key string) string {
	var b strings.Builder
	b.Grow(len("rl:{:}") + len(name) + min(len(key), MaxKeyLen) + 8)
	b.WriteString("rl:{")
	escape(&b, name, true)
	b.WriteByte(':')
	if len(key) > MaxKeyLen {
		sum := sha256.Sum256([]byte(key))
		b.WriteByte('#') // never appears unescaped otherwise
		b.WriteString(hex.EncodeToString(sum[:]))
	} else {
		escape(&b, key, false)
	}
	b.WriteByte('}')
	return b.String()
}

// FleetKey names what the instances of a limiter know of each other:
//
//	rl:{name}
func FleetKey(name string) string {
	var b strings.Builder
	b.WriteString("rl:{")
	escape(&b, name, true)
	b.WriteByte('}')
	return b.String()
}

// escape writes s with the characters {, }, % and #, control characters and,
// if asked, the colon in the %XX form of URLs.
func escape(b *strings.Builder, s string, colon bool) {
	const digits = "0123456789ABCDEF"
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '{', c == '}', c == '%', c == '#', c < ' ', c == 0x7f, colon && c == ':':
			b.WriteByte('%')
			b.WriteByte(digits[c>>4])
			b.WriteByte(digits[c&15])
		default:
			b.WriteByte(c)
		}
	}
}
