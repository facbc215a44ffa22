package httplimit_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/resilient-go/limiter/hybrid/httplimit"
)

var (
	inner  = netip.MustParsePrefix("10.0.0.0/8")
	edge   = netip.MustParsePrefix("2001:db8:ed::/48")
	byNet  = []httplimit.IPOption{httplimit.TrustProxies(inner, edge)}
	oneHop = []httplimit.IPOption{httplimit.TrustHops(1)}
	twoHop = []httplimit.IPOption{httplimit.TrustHops(2)}
)

const (
	proxy    = "10.0.0.1:1234"
	attacker = "203.0.113.66"
	victim   = "192.0.2.1"
	xff      = "X-Forwarded-For"
)

// with adds an option to some.
func with(options []httplimit.IPOption, more httplimit.IPOption) []httplimit.IPOption {
	return append(slices.Clone(options), more)
}

// What a client writes into the headers moves it into no other bucket: neither a
// fresh one nor that of a victim.
func TestSpoofedHeaders(t *testing.T) {
	byForwarded := httplimit.FromHeader(httplimit.Forwarded)
	byReal := httplimit.FromHeader(httplimit.XRealIP)
	for _, c := range []struct {
		name    string
		options []httplimit.IPOption
		remote  string
		headers []string
		key     string
	}{
		// Nobody is trusted.
		{"default, XFF", nil, attacker + ":1", []string{xff, victim}, attacker},
		{"default, X-Real-IP", nil, attacker + ":1", []string{"X-Real-IP", victim}, attacker},
		{"default, Forwarded", nil, attacker + ":1", []string{"Forwarded", "for=" + victim}, attacker},
		{"default, other headers", nil, attacker + ":1", []string{"True-Client-IP", victim, "CF-Connecting-IP", victim, "X-Client-IP", victim}, attacker},
		{"default, from a proxy", nil, proxy, []string{xff, victim}, "10.0.0.1"},

		// Networks are trusted.
		{"around the proxy", byNet, attacker + ":1", []string{xff, victim}, attacker},
		{"around the proxy, claiming to be one", byNet, attacker + ":1", []string{xff, "10.0.0.2"}, attacker},
		{"leftmost", byNet, proxy, []string{xff, victim + ", " + attacker}, attacker},
		{"many to the left", byNet, proxy, []string{xff, strings.Repeat(victim+", ", 500) + attacker}, attacker},
		{"proxies to the left", byNet, proxy, []string{xff, victim + ", 10.0.0.9, " + attacker + ", 10.0.0.2"}, attacker},
		{"a line of its own", byNet, proxy, []string{xff, victim, xff, attacker}, attacker},
		{"garbage to the left", byNet, proxy, []string{xff, "\"'<>;--, " + attacker}, attacker},
		{"empty elements", byNet, proxy, []string{xff, victim + ",,, " + attacker + ", ,"}, attacker},
		{"ports", byNet, proxy, []string{xff, victim + ":1, " + attacker + ":99"}, attacker},
		{"mapped", byNet, proxy, []string{xff, "::ffff:" + attacker}, attacker},
		{"mapped and bracketed", byNet, proxy, []string{xff, "[::ffff:" + attacker + "]:99"}, attacker},
		{"other headers than the trusted", byNet, proxy, []string{"Forwarded", "for=" + victim, "X-Real-IP", victim, xff, attacker}, attacker},
		{"chain of proxies", byNet, "[2001:db8:ed::1]:1", []string{xff, victim + "," + attacker + ",10.0.0.3,2001:db8:ed::2"}, attacker},
		{"unreadable next to the proxy", byNet, proxy, []string{xff, victim + ", unknown"}, "unknown"},
		{"unreadable behind a proxy", byNet, proxy, []string{xff, victim + ", _hidden, 10.0.0.2"}, "unknown"},
		{"all are proxies", byNet, proxy, []string{xff, "10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"no header", byNet, proxy, nil, "10.0.0.1"},
		{"empty header", byNet, proxy, []string{xff, ""}, "10.0.0.1"},

		// Hops are counted.
		{"one hop", oneHop, proxy, []string{xff, victim + ", " + attacker}, attacker},
		{"one hop, two lines", oneHop, proxy, []string{xff, victim, xff, attacker}, attacker},
		{"one hop over a Unix socket", oneHop, "@", []string{xff, victim + ", " + attacker}, attacker},
		{"one hop, none told", oneHop, proxy, nil, "10.0.0.1"},
		{"one hop, unreadable", oneHop, proxy, []string{xff, victim + ", x"}, "unknown"},
		{"two hops", twoHop, proxy, []string{xff, victim + ", " + attacker + ", 198.51.100.1"}, attacker},
		{"two hops, around the edge", twoHop, proxy, []string{xff, attacker}, attacker},

		// X-Real-IP.
		{"X-Real-IP", with(byNet, byReal), proxy, []string{"X-Real-IP", attacker, xff, victim}, attacker},
		{"X-Real-IP twice", with(byNet, byReal), proxy, []string{"X-Real-IP", victim, "X-Real-IP", attacker}, attacker},
		{"X-Real-IP with a list", with(byNet, byReal), proxy, []string{"X-Real-IP", victim + ", " + attacker}, "unknown"},
		{"X-Real-IP around the proxy", with(byNet, byReal), attacker + ":1", []string{"X-Real-IP", victim}, attacker},
		{"X-Real-IP by hops", with(oneHop, byReal), "@", []string{"X-Real-IP", attacker}, attacker},
		{"X-Real-IP missing", with(byNet, byReal), proxy, []string{xff, victim}, "10.0.0.1"},
		{"X-Real-IP empty", with(byNet, byReal), proxy, []string{"X-Real-IP", ""}, "unknown"},

		// Forwarded.
		{"Forwarded", with(byNet, byForwarded), proxy, []string{"Forwarded", "for=" + victim + ", for=" + attacker}, attacker},
		{"Forwarded, more parameters", with(byNet, byForwarded), proxy, []string{"Forwarded", "for=" + victim + ";by=x,proto=http ; For = y, proto=https;FOR=\"" + attacker + ":99\";host=a"}, attacker},
		{"Forwarded, IPv6", with(byNet, byForwarded), proxy, []string{"Forwarded", "for=" + victim + `, for="[2001:db8:1:2::3]:99"`}, "2001:db8:1:2::/64"},
		{"Forwarded, IPv6 without quotes", with(byNet, byForwarded), proxy, []string{"Forwarded", "for=" + victim + `, for=[2001:db8:1:2::3]:99`}, "2001:db8:1:2::/64"},
		{"Forwarded, open quote", with(byNet, byForwarded), proxy, []string{"Forwarded", `for="` + victim + `, for=` + attacker}, attacker},
		{"Forwarded, open quote before a quoted one", with(byNet, byForwarded), proxy, []string{"Forwarded", `for="` + victim + `, for="` + attacker + `"`}, attacker},
		{"Forwarded, open quote on a line of its own", with(byNet, byForwarded), proxy, []string{"Forwarded", `for="`, "Forwarded", "for=" + attacker}, attacker},
		{"Forwarded, escaped quote", with(byNet, byForwarded), proxy, []string{"Forwarded", `for="\", for=` + attacker}, attacker},
		{"Forwarded, comma in quotes", with(byNet, byForwarded), proxy, []string{"Forwarded", "for=" + attacker + `;host="a, for=` + victim + `"`}, attacker},
		{"Forwarded, two addresses in one element", with(byNet, byForwarded), proxy, []string{"Forwarded", "for=" + attacker + ";for=" + victim}, "unknown"},
		{"Forwarded, hidden", with(byNet, byForwarded), proxy, []string{"Forwarded", "for=" + victim + ", for=_hidden"}, "unknown"},
		{"Forwarded, without for", with(byNet, byForwarded), proxy, []string{"Forwarded", "for=" + victim + ", by=10.0.0.1"}, "unknown"},
		{"Forwarded, malformed", with(byNet, byForwarded), proxy, []string{"Forwarded", "for=" + victim + ", " + attacker}, "unknown"},
		{"Forwarded, two hops", with(twoHop, byForwarded), proxy, []string{"Forwarded", "for=" + victim + ", for=" + attacker + ", for=_edge"}, attacker},
	} {
		want(t, c.name, httplimit.ByIP(c.options...).Of(get(c.remote, c.headers...)), c.key)
	}
}

// The default middleware, an attacker that sends another address each time, and a
// victim that must not notice.
func TestSpoofingNeitherEvadesNorLocksOut(t *testing.T) {
	const limit, attacks = 5, 10_000
	for name, options := range map[string][]httplimit.IPOption{"direct": nil, "behind a proxy": byNet, "hops": oneHop} {
		t.Run(name, func(t *testing.T) {
			lim := buckets(limit)
			h := middleware(t, lim, httplimit.WithKey(httplimit.ByIP(options...)))(ok)
			send := func(from string, forged string) int {
				if options == nil {
					return serve(h, get(from+":1", xff, forged, "X-Real-IP", forged, "Forwarded", "for="+forged)).Code
				}
				return serve(h, get(proxy, xff, forged+", "+from, "X-Real-IP", forged, "Forwarded", "for="+forged)).Code
			}
			passed := 0
			for i := range attacks {
				forged := fmt.Sprintf("100.%d.%d.%d", i>>16&255, i>>8&255, i&255)
				if i%2 == 1 {
					forged = victim
				}
				if send(attacker, forged) == http.StatusOK {
					passed++
				}
			}
			want(t, "passed", passed, limit)
			wantList(t, "buckets", lim.keys(), []string{attacker}) // and so memory is bounded
			want(t, "status of the victim", send(victim, attacker), http.StatusOK)
		})
	}
}

// Whatever stands to the left, what the proxy appended is the client's address.
func FuzzAppendedByAProxy(f *testing.F) {
	for _, s := range []string{"", victim, victim + ", ", `for="`, `"`, `\`, `for="\`, ",", ";", `for=1.2.3.4;by="`, "10.0.0.1", "for=10.0.0.1", strings.Repeat(",", 300)} {
		f.Add(s, true)
		f.Add(s, false)
	}
	forms := map[httplimit.ClientHeader][]string{
		httplimit.XForwardedFor: {attacker, attacker + ":99", "::ffff:" + attacker},
		httplimit.Forwarded:     {"for=" + attacker, `by=x;for="` + attacker + `:99"`, `for="[::ffff:` + attacker + `]";host="a,b\""`},
	}
	names := map[httplimit.ClientHeader]string{httplimit.XForwardedFor: xff, httplimit.Forwarded: "Forwarded"}
	f.Fuzz(func(t *testing.T, left string, sameLine bool) {
		for header, appended := range forms {
			for _, own := range appended {
				lines := []string{left, own}
				if sameLine {
					lines = []string{left + ", " + own}
				}
				for _, options := range [][]httplimit.IPOption{byNet, oneHop} {
					r := get(proxy)
					r.Header[names[header]] = lines
					if key := httplimit.ByIP(with(options, httplimit.FromHeader(header))...).Of(r); key != attacker {
						t.Errorf("%q: key %q, want %q", lines, key, attacker)
					}
				}
			}
		}
	})
}
