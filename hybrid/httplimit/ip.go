package httplimit

import (
	"net/http"
	"net/netip"
	"strings"
)

// An IPOption changes a default of [ByIP].
type IPOption func(*ipConfig)

// A ClientHeader is a header in which proxies tell the address of their client.
type ClientHeader uint8

const (
	// XForwardedFor: each proxy appends the address it sees.
	XForwardedFor ClientHeader = iota
	// XRealIP: the proxy sets one address.
	XRealIP
	// Forwarded: RFC 7239; each proxy appends an element, of which "for" counts.
	Forwarded

	clientHeaders = int(Forwarded) + 1
)

var clientHeaderNames = [clientHeaders]string{"X-Forwarded-For", "X-Real-Ip", "Forwarded"}

// isForwarding reports whether a header is one of the above.
func isForwarding(name string) bool {
	for _, h := range clientHeaderNames {
		if strings.EqualFold(h, name) {
			return true
		}
	}
	return false
}

type ipConfig struct {
	trusted []netip.Prefix
	hops    int
	header  ClientHeader
	bits    int

	trustedSet, hopsSet, headerSet bool
}

// TrustProxies names the networks of your proxies. If a request comes from one,
// the header is read from the right, and the first address that is not in these
// networks is the client's. What stands left of it anybody may have written. If all
// are trusted, the leftmost is the client. Default: nobody is trusted.
func TrustProxies(networks ...netip.Prefix) IPOption {
	return func(c *ipConfig) { c.trusted, c.trustedSet = append(c.trusted, networks...), true }
}

// TrustHops says that every request comes through n proxies of yours, whatever
// their addresses, also over a Unix socket: the client is the n-th address of the
// header from the right, or the leftmost if there are fewer. Use it only if nobody
// can reach the server around the proxies. It contradicts [TrustProxies].
func TrustHops(n int) IPOption {
	return func(c *ipConfig) { c.hops, c.hopsSet = n, true }
}

// FromHeader says in which header the trusted proxies tell the address. They must
// write this one themselves; one that they pass on is the client's word. Default:
// [XForwardedFor].
func FromHeader(h ClientHeader) IPOption {
	return func(c *ipConfig) { c.header, c.headerSet = h, true }
}

// GroupIPv6 sets how many bits of an IPv6 address count, from 32 to 128. A
// subscriber usually has a whole /64, sometimes a /56 or /48. Default: 64.
func GroupIPv6(bits int) IPOption { return func(c *ipConfig) { c.bits = bits } }

// unknownClient is the bucket of all whose address is not known.
const unknownClient = "unknown"

// ByIP is the address of the client: the one that the connection comes from, or if
// proxies are trusted what they say. Port and zone do not count, an IPv4 address
// in IPv6 form is that IPv4 address, and IPv6 addresses count by their network
// ([GroupIPv6]), as in "2001:db8::/64". Requests whose address cannot be read
// share the key "unknown"; the key is never empty.
func ByIP(options ...IPOption) Key {
	c := ipConfig{bits: 64}
	for _, o := range options {
		if o != nil {
			o(&c)
		}
	}
	if err := c.validate(); err != nil {
		return Key{err: err}
	}
	return keyOf(func(r *http.Request) string { return c.group(c.client(r)) })
}

func (c *ipConfig) validate() error {
	for i, p := range c.trusted {
		if !p.IsValid() {
			return bad("TrustProxies", "network %d is invalid", i)
		}
		if a := p.Addr(); a.Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
		}
		if p.Bits() == 0 {
			return bad("TrustProxies", "%v trusts everybody, and so the client's own word: use TrustHops", p)
		}
		c.trusted[i] = p
	}
	switch {
	case c.trustedSet && len(c.trusted) == 0:
		return bad("TrustProxies", "no networks")
	case c.hopsSet && c.hops < 1:
		return bad("TrustHops", "must be at least 1, not %d", c.hops)
	case c.hopsSet && c.trustedSet:
		return bad("TrustHops", "contradicts TrustProxies")
	case int(c.header) >= clientHeaders:
		return bad("FromHeader", "unknown header %d", c.header)
	case c.headerSet && !c.hopsSet && !c.trustedSet:
		return bad("FromHeader", "nobody is trusted to write it: add TrustProxies or TrustHops")
	case c.header == XRealIP && c.hops > 1:
		return bad("TrustHops", "X-Real-IP has one address, so there is 1 hop, not %d", c.hops)
	case c.bits < 32 || c.bits > 128:
		return bad("GroupIPv6", "must be from 32 to 128, not %d", c.bits)
	}
	return nil
}

// client is the address of a request's client, the zero Addr if it is not known.
func (c *ipConfig) client(r *http.Request) netip.Addr {
	last := parseAddr(r.RemoteAddr)
	if c.hops == 0 && !c.trusts(last) {
		return last
	}
	left := c.hops
	for value := range fromRight(r.Header, c.header) {
		last = parseAddr(value)
		if c.hops > 0 {
			if left--; left == 0 {
				break
			}
			continue
		}
		if !c.trusts(last) { // an unreadable one too: nobody vouches for what is left of it
			break
		}
	}
	return last
}

func (c *ipConfig) trusts(a netip.Addr) bool {
	for _, p := range c.trusted {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// group is the key of an address.
func (c *ipConfig) group(a netip.Addr) string {
	switch {
	case !a.IsValid():
		return unknownClient
	case a.Is4() || c.bits == 128:
		return a.String()
	default:
		p, _ := a.Prefix(c.bits) // 32 to 128 bits fit
		return p.String()
	}
}

// parseAddr reads an address with or without a port, brackets and zone. The zero
// Addr says that it is none.
func parseAddr(s string) netip.Addr {
	s = strings.Trim(s, " \t")
	if inner, ok := strings.CutPrefix(s, "["); ok {
		host, rest, ok := strings.Cut(inner, "]")
		if !ok || rest != "" && rest[0] != ':' || !strings.Contains(host, ":") {
			return netip.Addr{}
		}
		s = host
	} else if strings.Count(s, ":") == 1 {
		s, _, _ = strings.Cut(s, ":")
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Addr{}
	}
	return a.Unmap().WithZone("")
}
