package httplimit_test

import (
	"net/netip"
	"testing"

	"github.com/resilient-go/limiter/hybrid/httplimit"
)

func TestKeyByIP(t *testing.T) {
	for _, c := range []struct {
		remote, key string
		options     []httplimit.IPOption
	}{
		{remote: "203.0.113.7:4711", key: "203.0.113.7"},
		{remote: "203.0.113.7:1", key: "203.0.113.7"},
		{remote: "203.0.113.7", key: "203.0.113.7"},
		{remote: "[::ffff:203.0.113.7]:80", key: "203.0.113.7"},
		{remote: "[::ffff:cb00:7107]:80", key: "203.0.113.7"},
		{remote: "::ffff:203.0.113.7", key: "203.0.113.7"},
		{remote: "[::ffff:203.0.113.7%eth0]:80", key: "203.0.113.7"},
		{remote: "[2001:db8:1:2:3:4:5:6]:80", key: "2001:db8:1:2::/64"},
		{remote: "[2001:DB8:1:2:ffff::1]:80", key: "2001:db8:1:2::/64"},
		{remote: "[2001:db8:1:2:3:4:5:6]", key: "2001:db8:1:2::/64"},
		{remote: "2001:db8:1:2:3:4:5:6", key: "2001:db8:1:2::/64"},
		{remote: "[fe80::1%eth0]:80", key: "fe80::/64"},
		{remote: "fe80::2%25wlan0", key: "fe80::/64"},
		{remote: "[2001:db8:1:2ff::1]:80", key: "2001:db8:1:200::/56", options: []httplimit.IPOption{httplimit.GroupIPv6(56)}},
		{remote: "[2001:db8:1:2::1]:80", key: "2001:db8::/32", options: []httplimit.IPOption{httplimit.GroupIPv6(32)}},
		{remote: "[2001:db8:1:2::1]:80", key: "2001:db8:1:2::1", options: []httplimit.IPOption{httplimit.GroupIPv6(128)}},
		{remote: "203.0.113.7:80", key: "203.0.113.7", options: []httplimit.IPOption{httplimit.GroupIPv6(32), nil}},

		// Not known: a bucket of its own.
		{remote: "", key: "unknown"},
		{remote: "@", key: "unknown"},
		{remote: "/run/app.sock", key: "unknown"},
		{remote: "pipe", key: "unknown"},
		{remote: "localhost:80", key: "unknown"},
		{remote: "256.0.0.1:80", key: "unknown"},
		{remote: "010.0.0.1:80", key: "unknown"},
		{remote: "1.2.3:80", key: "unknown"},
		{remote: "[203.0.113.7]:80", key: "unknown"},
		{remote: "[2001:db8::1", key: "unknown"},
		{remote: "[2001:db8::1]x", key: "unknown"},
		{remote: "[2001:db8::1]]:80", key: "unknown"},
		{remote: ":80", key: "unknown"},
		{remote: "203.0.113.7, 203.0.113.8", key: "unknown"},
	} {
		want(t, "key of "+c.remote, httplimit.ByIP(c.options...).Of(get(c.remote)), c.key)
	}
}

// A request without an address is limited like any other.
func TestUnknownAddressesShareABucket(t *testing.T) {
	h := middleware(t, buckets(2))(ok)
	for i, remote := range []string{"", "@", "pipe"} {
		want(t, "status", serve(h, get(remote)).Code, []int{200, 200, 429}[i])
	}
	want(t, "status of a known one", serve(h, get(client)).Code, 200)
}

// A client that rotates through its network stays in one bucket.
func TestRotationInANetwork(t *testing.T) {
	h := middleware(t, buckets(2))(ok)
	for i, remote := range []string{"[2001:db8::1]:1", "[2001:db8::2]:1", "[2001:db8::ffff:ffff:ffff:ffff]:1", "[2001:db8:0:1::1]:1"} {
		want(t, "status of "+remote, serve(h, get(remote)).Code, []int{200, 200, 429, 200}[i])
	}
}

func TestTrustedAddressForms(t *testing.T) {
	for _, c := range []struct{ network, peer, key string }{
		{"10.0.0.0/8", "10.1.2.3:80", "192.0.2.1"},
		{"10.9.9.9/8", "10.1.2.3:80", "192.0.2.1"}, // host bits do not matter
		{"10.0.0.0/8", "[::ffff:10.1.2.3]:80", "192.0.2.1"},
		{"::ffff:10.0.0.0/104", "10.1.2.3:80", "192.0.2.1"},
		{"::ffff:10.0.0.0/104", "11.1.2.3:80", "11.1.2.3"},
		{"fe80::/10", "[fe80::1%eth0]:80", "192.0.2.1"},
		{"10.1.2.3/32", "10.1.2.3:80", "192.0.2.1"},
		{"10.1.2.3/32", "10.1.2.4:80", "10.1.2.4"},
		{"10.0.0.0/8", "", "unknown"},
	} {
		key := httplimit.ByIP(httplimit.TrustProxies(netip.MustParsePrefix(c.network)))
		want(t, c.network+" and "+c.peer, key.Of(get(c.peer, "X-Forwarded-For", "192.0.2.1")), c.key)
	}
}

func TestOptionsDoNotKeepTheList(t *testing.T) {
	list := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	key := httplimit.ByIP(httplimit.TrustProxies(list...))
	list[0] = netip.MustParsePrefix("203.0.0.0/8")
	want(t, "key", key.Of(get("203.0.113.7:1", "X-Forwarded-For", "192.0.2.1")), "203.0.113.7")
}

// Whatever a text is, an address that is read from it is of a form that keys do
// not differ by.
func FuzzParseAddr(f *testing.F) {
	for _, s := range []string{"", "1.2.3.4", "1.2.3.4:80", "[::1]:80", "::ffff:1.2.3.4%x", "[fe80::1%eth0]", "]", "[", "[]:", ":", " 1.2.3.4\t"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a := httplimit.ParseAddr(s)
		if !a.IsValid() {
			return
		}
		if a.Zone() != "" || a.Is4In6() {
			t.Errorf("%q is read as %v", s, a)
		}
		port := netip.AddrPortFrom(a, 80).String()
		for _, form := range []string{a.String(), " " + a.String() + "\t", port} {
			if again := httplimit.ParseAddr(form); again != a {
				t.Errorf("%q is read as %v, and %q as %v", s, a, form, again)
			}
		}
	})
}
