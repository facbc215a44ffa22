package grpclimit_test

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/resilient-go/limiter/contrib/grpclimit"
	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/hybrid/httplimit"
)

// keyOf is the key that a server asks its limiter for, "" for none.
func keyOf(t testing.TB, ctx context.Context, keys ...grpclimit.Key) string {
	t.Helper()
	lim := says(allowed, nil)
	_, _ = call(ctx, server(t, lim, grpclimit.WithKey(keys...)), "request")
	if asked := lim.requests(); len(asked) == 1 {
		return asked[0].Key
	}
	return ""
}

func from(a net.Addr, md ...string) context.Context {
	ctx := peer.NewContext(context.Background(), &peer.Peer{Addr: a})
	return metadata.NewIncomingContext(ctx, metadata.Pairs(md...))
}

type tenant struct{}

func TestKeys(t *testing.T) {
	ctx := context.WithValue(from(addr("203.0.113.7:1"), "X-User", "ann", "x-user", "bob", "bin-bin", "\xff"), tenant{}, "t1")
	byTenant := grpclimit.ByFunc(func(ctx context.Context, _ grpclimit.Call) string {
		s, _ := ctx.Value(tenant{}).(string)
		return s
	})
	byMessage := grpclimit.ByFunc(func(_ context.Context, c grpclimit.Call) string { return c.Message.(string) })
	for name, test := range map[string]struct {
		keys []grpclimit.Key
		want string
	}{
		"method":           {[]grpclimit.Key{grpclimit.ByMethod()}, method},
		"address":          {[]grpclimit.Key{grpclimit.ByIP()}, "203.0.113.7"},
		"first value":      {[]grpclimit.Key{grpclimit.ByMetadata("X-USER")}, "ann"},
		"binary value":     {[]grpclimit.Key{grpclimit.ByMetadata("bin-bin")}, "\xff"},
		"no value":         {[]grpclimit.Key{grpclimit.ByMetadata("x-other")}, ""},
		"context":          {[]grpclimit.Key{byTenant}, "t1"},
		"message":          {[]grpclimit.Key{byMessage}, "request"},
		"fixed":            {[]grpclimit.Key{grpclimit.Fixed("all")}, "all"},
		"joined":           {[]grpclimit.Key{grpclimit.Fixed("a|b"), grpclimit.Join(byTenant, grpclimit.ByMethod())}, `a\|b|t1|` + method},
		"an empty part":    {[]grpclimit.Key{grpclimit.Fixed("a"), grpclimit.ByMetadata("x-other")}, ""},
		"a long key":       {[]grpclimit.Key{grpclimit.Fixed(strings.Repeat("x", 257))}, `\#`},
		"of 256 bytes":     {[]grpclimit.Key{grpclimit.Fixed(strings.Repeat("x", 256))}, strings.Repeat("x", 256)},
		"a hash as a part": {[]grpclimit.Key{grpclimit.Fixed(`\#`)}, `\\#`},
	} {
		t.Run(name, func(t *testing.T) {
			got := keyOf(t, ctx, test.keys...)
			if name == "a long key" {
				want(t, "length", len(got), 2+64)
				want(t, "start", got[:2], test.want[:2])
				return
			}
			want(t, "key", got, test.want)
		})
	}
}

func TestAddressesOfPeers(t *testing.T) {
	for text, wanted := range map[string]string{
		"203.0.113.7:4711":           "203.0.113.7",
		"203.0.113.7:4712":           "203.0.113.7",
		"[::ffff:203.0.113.7]:1":     "203.0.113.7",
		"[2001:db8:1:2:3:4:5:6]:1":   "2001:db8:1:2::/64",
		"[2001:db8:1:2:ffff::1]:99":  "2001:db8:1:2::/64",
		"[2001:db8:1:3::1]:1":        "2001:db8:1:3::/64",
		"[fe80::1%eth0]:1":           "fe80::/64",
		"@":                          "unknown",
		"":                           "unknown",
		"bufconn":                    "unknown",
		"/run/service.sock":          "unknown",
		"999.0.113.7:4711":           "unknown",
		"[2001:db8::1]":              "2001:db8::/64",
		"203.0.113.7":                "203.0.113.7",
		"[::ffff:203.0.113.7%eth0]:": "203.0.113.7",
	} {
		want(t, text, keyOf(t, from(addr(text)), grpclimit.ByIP()), wanted)
	}
	tcp := &net.TCPAddr{IP: net.ParseIP("203.0.113.7"), Port: 5} // 16 bytes long inside
	want(t, "a TCP address", keyOf(t, from(tcp), grpclimit.ByIP()), "203.0.113.7")
	want(t, "no address", keyOf(t, from(nil), grpclimit.ByIP()), "unknown")
	want(t, "no peer", keyOf(t, t.Context(), grpclimit.ByIP()), "unknown")
	want(t, "by /128", keyOf(t, from(addr("[2001:db8::1]:1")), grpclimit.ByIP(httplimit.GroupIPv6(128))), "2001:db8::1")
}

// TestForwardedAddresses are believed only from trusted proxies.
func TestForwardedAddresses(t *testing.T) {
	proxies := httplimit.TrustProxies(netip.MustParsePrefix("10.0.0.0/8"))
	proxy, other := addr("10.0.0.1:1"), addr("198.51.100.1:1")
	md := []string{"x-forwarded-for", "192.0.2.1, 203.0.113.7", "x-real-ip", "203.0.113.8", "forwarded", "for=203.0.113.9"}
	for name, test := range map[string]struct {
		from    addr
		options []httplimit.IPOption
		want    string
	}{
		"nobody is trusted":      {proxy, nil, "10.0.0.1"},
		"a proxy":                {proxy, []httplimit.IPOption{proxies}, "203.0.113.7"},
		"not a proxy":            {other, []httplimit.IPOption{proxies}, "198.51.100.1"},
		"one hop":                {other, []httplimit.IPOption{httplimit.TrustHops(1)}, "203.0.113.7"},
		"two hops":               {other, []httplimit.IPOption{httplimit.TrustHops(2)}, "192.0.2.1"},
		"x-real-ip":              {proxy, []httplimit.IPOption{proxies, httplimit.FromHeader(httplimit.XRealIP)}, "203.0.113.8"},
		"forwarded":              {proxy, []httplimit.IPOption{proxies, httplimit.FromHeader(httplimit.Forwarded)}, "203.0.113.9"},
		"a hop on a Unix socket": {"@", []httplimit.IPOption{httplimit.TrustHops(1)}, "203.0.113.7"},
	} {
		t.Run(name, func(t *testing.T) {
			want(t, "key", keyOf(t, from(test.from, md...), grpclimit.ByIP(test.options...)), test.want)
		})
	}
	several := from(proxy, "x-forwarded-for", "192.0.2.1", "x-forwarded-for", "203.0.113.7")
	want(t, "several values", keyOf(t, several, grpclimit.ByIP(proxies)), "203.0.113.7")
}

// FuzzJoinedKeys: lists of parts that differ make different keys, and a list with
// an empty part makes none.
func FuzzJoinedKeys(f *testing.F) {
	f.Add("a", "b", "a|b", "c")
	f.Add(`a\`, "b", `a\|b`, "c")
	f.Add(`\#`, "b", "", strings.Repeat("x", 300))
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		lists := [][]string{{a}, {b}, {a, b}, {c, d}, {b, a}, {a + b}, {a, b, c}, {a + "|" + b}, {a + `\`, b}, {a, "|" + b}}
		keys := make([]string, len(lists))
		for i, list := range lists {
			parts := make([]grpclimit.Key, len(list))
			for j, text := range list {
				parts[j] = grpclimit.ByFunc(func(context.Context, grpclimit.Call) string { return text })
			}
			keys[i] = keyOf(t, t.Context(), parts...)
			if got, empty := keys[i] == "", slices.Contains(list, ""); got != empty || len(keys[i]) > 256 {
				t.Errorf("%q make the key %q", list, keys[i])
			}
			for j := range i {
				if same := slices.Equal(list, lists[j]); keys[i] != "" && (keys[i] == keys[j]) != same {
					t.Errorf("%q and %q make the key %q", list, lists[j], keys[i])
				}
			}
		}
	})
}

// TestManyAddressesOfOneNetwork cannot get around a limit.
func TestManyAddressesOfOneNetwork(t *testing.T) {
	lim := says(allowed, nil)
	s := server(t, lim)
	for i := range 100 {
		a := netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, byte(i), byte(i), 15: byte(i)})
		ctx := from(net.TCPAddrFromAddrPort(netip.AddrPortFrom(a, uint16(i+1))), "x-forwarded-for", a.String())
		if _, err := call(ctx, s, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range lim.requests() {
		want(t, "request", r, hybrid.Request{Key: "2001:db8::/64", N: 1})
	}
}
