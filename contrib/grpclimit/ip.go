package grpclimit

import (
	"context"
	"net/http"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/hybrid/httplimit"
)

// forwarding are the names in metadata and HTTP in which proxies tell the address
// of their client.
var forwarding = map[string]string{"x-forwarded-for": "X-Forwarded-For", "x-real-ip": "X-Real-Ip", "forwarded": "Forwarded"}

func isForwarding(name string) bool { return forwarding[name] != "" }

// ByIP is the address of the client, as [httplimit.ByIP] reads it: the one that the
// connection comes from, or, if its options trust proxies, what these say in the
// metadata x-forwarded-for, x-real-ip or forwarded. The port does not count, an IPv4
// address in IPv6 form is that IPv4 address, and IPv6 addresses count by their /64.
// Calls whose address cannot be read, as over a Unix socket, share the key
// "unknown"; the key is never empty. It is for servers only.
func ByIP(options ...httplimit.IPOption) Key {
	key := httplimit.ByIP(options...)
	if _, err := httplimit.New(nobody{}, httplimit.WithKey(key)); err != nil {
		return Key{err: bad("ByIP", "%w", err)}
	}
	return Key{parts: []part{{
		of:   func(ctx context.Context, _ Call, _ side) string { return key.Of(asRequest(ctx)) },
		only: onServer, name: "ByIP",
	}}}
}

// asRequest is what an HTTP request would say about the client of a call.
func asRequest(ctx context.Context) *http.Request {
	r := &http.Request{Header: http.Header{}}
	if p, ok := peer.FromContext(ctx); ok && p.Addr != nil {
		r.RemoteAddr = p.Addr.String()
	}
	for name, header := range forwarding {
		if values := metadata.ValueFromIncomingContext(ctx, name); len(values) > 0 {
			r.Header[header] = values
		}
	}
	return r
}

// nobody stands for a limiter where only options are checked.
type nobody struct{}

func (nobody) Take(context.Context, hybrid.Request) (hybrid.Result, error) {
	return hybrid.Result{}, hybrid.ErrClosed
}
