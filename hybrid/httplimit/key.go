package httplimit

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
)

// A Key says whose bucket a request counts against. Make one with [ByIP],
// [ByHeader], [ByRoute], [ByFunc] or [Fixed], and several into one with [Join].
//
// Its text has the parts with "|" between them and "\" before each "|" and "\"
// inside of one, so that different parts never make the same text. One of more
// than 256 bytes is replaced by its SHA-256, in a form that no other key has.
// Equal parts of different kinds are equal: put a [Fixed] part in front where that
// matters, for instance if two middlewares share a limiter.
type Key struct {
	parts []func(*http.Request) string
	err   error
}

// Of returns the key of a request. It is empty if one of its parts is.
func (k Key) Of(r *http.Request) string {
	texts := make([]string, len(k.parts))
	for i, part := range k.parts {
		if texts[i] = part(r); texts[i] == "" {
			return ""
		}
	}
	return joined(texts)
}

func (k Key) check() error {
	if k.err == nil && len(k.parts) == 0 {
		return bad("WithKey", "the key has no parts")
	}
	return k.err
}

const longestKey = 256

var escape = strings.NewReplacer(`\`, `\\`, `|`, `\|`)

// joined makes one text of parts that are not empty.
func joined(parts []string) string {
	var b strings.Builder
	for i, part := range parts {
		if i > 0 {
			b.WriteByte('|')
		}
		_, _ = escape.WriteString(&b, part) // a Builder does not fail
	}
	text := b.String()
	if len(text) > longestKey {
		sum := sha256.Sum256([]byte(text))
		return `\#` + hex.EncodeToString(sum[:]) // an escape that no part has
	}
	return text
}

// Join makes one key of several: of their parts, in their order.
func Join(keys ...Key) Key {
	var all Key
	for _, k := range keys {
		if err := k.check(); err != nil && all.err == nil {
			all.err = err
		}
		all.parts = append(all.parts, k.parts...)
	}
	return all
}

func keyOf(part func(*http.Request) string) Key {
	return Key{parts: []func(*http.Request) string{part}}
}

// ByFunc is a key by a function of the user: the name in a session, for instance.
// An empty text means that the request has none.
func ByFunc(f func(r *http.Request) string) Key {
	if f == nil {
		return Key{err: bad("ByFunc", "the function is nil")}
	}
	return keyOf(f)
}

// ByHeader is the first value of a header. Clients write what they like there, so
// it is of use only if something in front has checked it: who can make up values
// gets a bucket for each. The key is stored in Redis and may be secret; use
// [ByFunc] and a hash then.
func ByHeader(name string) Key {
	switch {
	case !isToken(name):
		return Key{err: bad("ByHeader", "%q is no name of a header", name)}
	case http.CanonicalHeaderKey(name) == "Host":
		return Key{err: bad("ByHeader", "net/http keeps Host in Request.Host: use ByFunc")}
	case isForwarding(name):
		return Key{err: bad("ByHeader", "anybody can write %s: use ByIP with TrustProxies or TrustHops", name)}
	}
	return keyOf(func(r *http.Request) string { return r.Header.Get(name) })
}

// ByRoute is the pattern of [http.ServeMux] that the request matched, such as
// "GET /users/{id}". It is known inside of the mux only: put the middleware around
// the handlers that it has, and not around the mux.
func ByRoute() Key { return keyOf(func(r *http.Request) string { return r.Pattern }) }

// Fixed is the same text for all requests: one bucket for all, or a name in front
// of other parts.
func Fixed(text string) Key {
	if text == "" {
		return Key{err: bad("Fixed", "the text is empty")}
	}
	return keyOf(func(*http.Request) string { return text })
}

// isToken reports whether a text is a token of HTTP.
func isToken(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isLower(c) && !isUpper(c) && !isDigit(c) && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// validValue reports whether a text can be the value of a header.
func validValue(s string) bool {
	return s != "" && printable(s) && strings.TrimSpace(s) == s
}
