package httplimit_test

import (
	"fmt"
	"net/http/httptest"
	"net/netip"

	"github.com/resilient-go/limiter/hybrid/httplimit"
)

// A subscriber with a whole /56 is one client.
func ExampleGroupIPv6() {
	key := httplimit.ByIP(httplimit.GroupIPv6(56))
	r := httptest.NewRequest("GET", "/", nil)
	for _, addr := range []string{"[2001:db8:1:1100::1]:1234", "[2001:db8:1:11ff::7]:1234"} {
		r.RemoteAddr = addr
		fmt.Println(key.Of(r))
	}
	// Output:
	// 2001:db8:1:1100::/56
	// 2001:db8:1:1100::/56
}

// Two proxies of ours, whose addresses nobody knows beforehand.
func ExampleTrustHops() {
	key := httplimit.ByIP(httplimit.TrustHops(2))
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "@" // a Unix socket
	r.Header.Set("X-Forwarded-For", "192.0.2.1, 203.0.113.7, 10.0.0.1")
	fmt.Println(key.Of(r))
	// Output: 203.0.113.7
}

func ExampleFromHeader() {
	key := httplimit.ByIP(
		httplimit.TrustProxies(netip.MustParsePrefix("10.0.0.0/8")),
		httplimit.FromHeader(httplimit.Forwarded))
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "10.0.0.1:1234"
	r.Header.Set("Forwarded", `for="[2001:db8::7]:4711";proto=https`)
	fmt.Println(key.Of(r))
	// Output: 2001:db8::/64
}

// A value that the gateway in front has checked.
func ExampleByHeader() {
	key := httplimit.ByHeader("X-Tenant")
	r := httptest.NewRequest("GET", "/", nil)
	fmt.Printf("%q\n", key.Of(r)) // none: refused with status 400, unless WithEmptyKeyPassed
	r.Header.Set("X-Tenant", "acme")
	fmt.Printf("%q\n", key.Of(r))
	// Output:
	// ""
	// "acme"
}

// Two middlewares on one limiter, with buckets of their own.
func ExampleFixed() {
	key := httplimit.Join(httplimit.Fixed("login"), httplimit.ByHeader("X-Tenant"))
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("X-Tenant", "a|b")
	fmt.Println(key.Of(r))
	// Output: login|a\|b
}
