package httplimit_test

import (
	"errors"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/hybrid/httplimit"
)

// Everything that is wrong is said by the constructor, by name.
func TestWrongOptionsAreRefused(t *testing.T) {
	onLimited := httplimit.WithOnLimited(func(http.ResponseWriter, *http.Request, hybrid.Result) {})
	costs := func(*http.Request) int { return 1 }
	after := func(httplimit.Response) int { return 1 }
	network := netip.MustParsePrefix("10.0.0.0/8")
	byIP := func(options ...httplimit.IPOption) httplimit.Option {
		return httplimit.WithKey(httplimit.Fixed("x"), httplimit.ByIP(options...))
	}
	for _, c := range []struct {
		field   string
		options []httplimit.Option
	}{
		{"WithStatus", []httplimit.Option{httplimit.WithStatus(0)}},
		{"WithStatus", []httplimit.Option{httplimit.WithStatus(200)}},
		{"WithStatus", []httplimit.Option{httplimit.WithStatus(399)}},
		{"WithStatus", []httplimit.Option{httplimit.WithStatus(600)}},
		{"WithDegradedStatus", []httplimit.Option{httplimit.WithDegradedStatus(302)}},
		{"WithCostAfter", []httplimit.Option{httplimit.WithCost(costs), httplimit.WithCostAfter(after)}},
		{"WithBody", []httplimit.Option{httplimit.WithProblemJSON(), httplimit.WithBody("text/html", nil)}},
		{"WithBody", []httplimit.Option{httplimit.WithBody("", nil)}},
		{"WithBody", []httplimit.Option{httplimit.WithBody("text/html\r\nX: y", nil)}},
		{"WithOnLimited", []httplimit.Option{onLimited, httplimit.WithStatus(503)}},
		{"WithOnLimited", []httplimit.Option{onLimited, httplimit.WithDegradedStatus(503)}},
		{"WithOnLimited", []httplimit.Option{onLimited, httplimit.WithBody("text/html", nil)}},
		{"WithPolicyName", []httplimit.Option{httplimit.WithPolicyName("")}},
		{"WithPolicyName", []httplimit.Option{httplimit.WithPolicyName("größe")}},
		{"WithPolicyName", []httplimit.Option{httplimit.WithPolicyName("a\r\nX: y")}},
		{"WithLegacyFields", []httplimit.Option{httplimit.WithLegacyFields(7)}},
		{"WithPartitionKey", []httplimit.Option{httplimit.WithPartitionKey(nil)}},
		{"WithPartitionKey", []httplimit.Option{httplimit.WithPartitionKey(make([]byte, 15))}},
		{"WithKey", []httplimit.Option{httplimit.WithKey()}},
		{"WithKey", []httplimit.Option{httplimit.WithKey(httplimit.Key{})}},
		{"WithKey", []httplimit.Option{httplimit.WithKey(httplimit.Fixed("a"), httplimit.Join())}},
		{"Fixed", []httplimit.Option{httplimit.WithKey(httplimit.Fixed(""))}},
		{"ByFunc", []httplimit.Option{httplimit.WithKey(httplimit.ByFunc(nil))}},
		{"ByHeader", []httplimit.Option{httplimit.WithKey(httplimit.ByHeader(""))}},
		{"ByHeader", []httplimit.Option{httplimit.WithKey(httplimit.ByHeader("X User"))}},
		{"ByHeader", []httplimit.Option{httplimit.WithKey(httplimit.ByHeader("host"))}},
		{"ByHeader", []httplimit.Option{httplimit.WithKey(httplimit.ByHeader("x-forwarded-for"))}},
		{"ByHeader", []httplimit.Option{httplimit.WithKey(httplimit.ByHeader("X-Real-IP"))}},
		{"ByHeader", []httplimit.Option{httplimit.WithKey(httplimit.ByHeader("Forwarded"))}},
		{"GroupIPv6", []httplimit.Option{byIP(httplimit.GroupIPv6(31))}},
		{"GroupIPv6", []httplimit.Option{byIP(httplimit.GroupIPv6(129))}},
		{"TrustProxies", []httplimit.Option{byIP(httplimit.TrustProxies())}},
		{"TrustProxies", []httplimit.Option{byIP(httplimit.TrustProxies(network, netip.Prefix{}))}},
		{"TrustProxies", []httplimit.Option{byIP(httplimit.TrustProxies(netip.MustParsePrefix("0.0.0.0/0")))}},
		{"TrustProxies", []httplimit.Option{byIP(httplimit.TrustProxies(netip.MustParsePrefix("::/0")))}},
		{"TrustProxies", []httplimit.Option{byIP(httplimit.TrustProxies(netip.MustParsePrefix("::ffff:0.0.0.0/96")))}},
		{"TrustHops", []httplimit.Option{byIP(httplimit.TrustHops(0))}},
		{"TrustHops", []httplimit.Option{byIP(httplimit.TrustHops(-1))}},
		{"TrustHops", []httplimit.Option{byIP(httplimit.TrustHops(1), httplimit.TrustProxies(network))}},
		{"TrustHops", []httplimit.Option{byIP(httplimit.TrustHops(2), httplimit.FromHeader(httplimit.XRealIP))}},
		{"FromHeader", []httplimit.Option{byIP(httplimit.FromHeader(httplimit.Forwarded))}},
		{"FromHeader", []httplimit.Option{byIP(httplimit.TrustHops(1), httplimit.FromHeader(9))}},
	} {
		m, err := httplimit.New(says(allowed, nil), c.options...)
		wantConfigError(t, err, c.field)
		if m != nil {
			t.Errorf("%s: a middleware in spite of the error", c.field)
		}
	}
}

func wantConfigError(t *testing.T, err error, field string) {
	t.Helper()
	var bad *httplimit.ConfigError
	if !errors.As(err, &bad) || bad.Field != field || bad.Reason == "" || bad.Error() != "httplimit: "+field+": "+bad.Reason {
		t.Errorf("the error is %v, want one of %s", err, field)
	}
}

func TestNilLimiterIsRefused(t *testing.T) {
	var none *hybrid.Limiter
	for _, lim := range []httplimit.WaitLimiter{nil, none, (*fake)(nil)} {
		_, err := httplimit.New(lim)
		wantConfigError(t, err, "New")
		_, err = httplimit.NewTransport(lim, nil)
		wantConfigError(t, err, "NewTransport")
	}
}

func TestNilOptionsAreIgnored(t *testing.T) {
	if _, err := httplimit.New(says(allowed, nil), nil); err != nil {
		t.Error(err)
	}
	if _, err := httplimit.NewTransport(says(allowed, nil), nil, nil); err != nil {
		t.Error(err)
	}
}

func TestWrongTransportOptionsAreRefused(t *testing.T) {
	for _, c := range []struct {
		field  string
		option httplimit.TransportOption
	}{
		{"WithTransportKey", httplimit.WithTransportKey(nil)},
		{"WithRetries", httplimit.WithRetries(-1)},
		{"WithBackoff", httplimit.WithBackoff(0, time.Second)},
		{"WithBackoff", httplimit.WithBackoff(-1, time.Second)},
		{"WithBackoff", httplimit.WithBackoff(2*time.Second, time.Second)},
		{"WithMaxPause", httplimit.WithMaxPause(0)},
		{"WithMaxPauses", httplimit.WithMaxPauses(0)},
	} {
		_, err := httplimit.NewTransport(says(allowed, nil), nil, c.option)
		wantConfigError(t, err, c.field)
	}
}
