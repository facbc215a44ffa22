package grpclimit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"google.golang.org/grpc/metadata"
)

// A Call is what a key or a cost is decided by.
type Call struct {
	// Method is the full name, "/package.Service/Method".
	Method string
	// Target of the client's connection, as it was given; empty on a server.
	Target string
	// Message is the request of a unary call, or the message of a stream that is
	// asked for. It is nil when a stream opens.
	Message any
}

// A Key says whose bucket a call counts against. Make one with [ByIP],
// [ByMetadata], [ByMethod], [ByTarget], [ByFunc] or [Fixed], and several into one
// with [Join].
//
// Its text has the parts with "|" between them and "\" before each "|" and "\"
// inside of one, so that different parts never make the same text. One of more
// than 256 bytes is replaced by its SHA-256, in a form that no other key has.
// Equal parts of different kinds are equal: put a [Fixed] part in front where that
// matters, for instance if an HTTP server shares the limiter.
type Key struct {
	parts []part
	err   error
}

type part struct {
	of   func(ctx context.Context, c Call, side side) string
	only side   // the side on which it makes sense, 0 for both
	name string // for the error if it is used on the other one
}

type side uint8

const (
	onServer side = iota + 1
	onClient
)

// of returns the key of a call. It is empty if one of its parts is.
func (k Key) of(ctx context.Context, c Call, at side) string {
	texts := make([]string, len(k.parts))
	for i, p := range k.parts {
		if texts[i] = p.of(ctx, c, at); texts[i] == "" {
			return ""
		}
	}
	return joined(texts)
}

// check finds what is wrong with a key, for an option of the given name.
func (k Key) check(option string, at side) error {
	if k.err != nil {
		return k.err
	}
	if len(k.parts) == 0 {
		return bad(option, "the key has no parts")
	}
	for _, p := range k.parts {
		if p.only != 0 && p.only != at {
			return bad(option, "%s is unknown on this side of a connection", p.name)
		}
	}
	return nil
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
		if k.err == nil && len(k.parts) == 0 {
			k.err = bad("Join", "a key has no parts")
		}
		if k.err != nil && all.err == nil {
			all.err = k.err
		}
		all.parts = append(all.parts, k.parts...)
	}
	return all
}

// ByFunc is a key by a function of the user: a tenant in the context that an
// interceptor in front has put there, a field of the message. An empty text means
// that the call has none.
func ByFunc(f func(ctx context.Context, c Call) string) Key {
	if f == nil {
		return Key{err: bad("ByFunc", "the function is nil")}
	}
	return Key{parts: []part{{of: func(ctx context.Context, c Call, _ side) string { return f(ctx, c) }}}}
}

// ByMethod is the full name of the method. On a server with a handler for unknown
// services clients can make names up, and get a bucket for each.
func ByMethod() Key {
	return ByFunc(func(_ context.Context, c Call) string { return c.Method })
}

// ByTarget is the target of the client's connection. It is for clients only.
func ByTarget() Key {
	return Key{parts: []part{{
		of:   func(_ context.Context, c Call, _ side) string { return c.Target },
		only: onClient, name: "ByTarget",
	}}}
}

// ByMetadata is the first value of a name in the metadata: of the incoming on a
// server, of the outgoing on a client. Clients write what they like there, so it is
// of use only if something in front has checked it: who can make up values gets a
// bucket for each. The key is stored in Redis and may be secret; use [ByFunc] and a
// hash then.
func ByMetadata(name string) Key {
	name = strings.ToLower(name)
	switch {
	case name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "":
		return Key{err: bad("ByMetadata", "%q is no name in metadata", name)}
	case isForwarding(name):
		return Key{err: bad("ByMetadata", "anybody can write %s: use ByIP with trusted proxies", name)}
	}
	return Key{parts: []part{{of: func(ctx context.Context, _ Call, at side) string {
		md, _ := metadata.FromIncomingContext(ctx)
		if at == onClient {
			md, _ = metadata.FromOutgoingContext(ctx)
		}
		if values := md.Get(name); len(values) > 0 {
			return values[0]
		}
		return ""
	}}}}
}

// Fixed is the same text for all calls: one bucket for all, or a name in front of
// other parts.
func Fixed(text string) Key {
	if text == "" {
		return Key{err: bad("Fixed", "the text is empty")}
	}
	return ByFunc(func(context.Context, Call) string { return text })
}
