package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/hybrid/httplimit"
)

func TestKeys(t *testing.T) {
	long := strings.Repeat("a", 257)
	user := httplimit.ByHeader("x-user")
	for _, c := range []struct {
		name string
		key  httplimit.Key
		text string
	}{
		{"header", user, "ann"},
		{"header with many values", httplimit.ByHeader("X-Many"), "1"},
		{"missing header", httplimit.ByHeader("X-None"), ""},
		{"function", httplimit.ByFunc(func(r *http.Request) string { return r.URL.Path }), "/path"},
		{"fixed", httplimit.Fixed("all"), "all"},
		{"joined", httplimit.Join(httplimit.Fixed("api"), user), "api|ann"},
		{"joined twice", httplimit.Join(httplimit.Fixed("a"), httplimit.Join(user, httplimit.Fixed("c"))), "a|ann|c"},
		{"separator in a part", httplimit.Join(httplimit.Fixed("a|b"), user), `a\|b|ann`},
		{"escape in a part", httplimit.Join(httplimit.Fixed(`a\`), user), `a\\|ann`},
		{"one part with both", httplimit.Fixed(`a\|`), `a\\\|`},
		{"one of the parts is missing", httplimit.Join(user, httplimit.ByHeader("X-None")), ""},
		{"no pattern outside of a mux", httplimit.Join(user, httplimit.ByRoute()), ""},
		{"256 bytes", httplimit.Fixed(long[:256]), long[:256]},
		{"257 bytes", httplimit.Fixed(long), `\#e8d95cc2b4bc198c54b40bd214df958afb65f5e73d2c2eafe0593cf5c635c1f0`},
		{"the zero key", httplimit.Key{}, ""},
	} {
		r := get(client, "X-User", "ann", "X-Many", "1", "X-Many", "2")
		want(t, c.name, c.key.Of(r), c.text)
	}
}

func TestKeyByRoute(t *testing.T) {
	lim := says(allowed, nil)
	limit := middleware(t, lim, httplimit.WithKey(httplimit.ByRoute(), httplimit.ByIP()))
	mux := http.NewServeMux()
	mux.Handle("GET /users/{id}", limit(ok))
	mux.Handle("/", limit(ok))
	for _, path := range []string{"/users/1", "/users/2", "/x", "/y"} {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.RemoteAddr = client
		want(t, "status of "+path, serve(mux, r).Code, http.StatusOK)
	}
	wantList(t, "keys", lim.keys(), []string{"GET /users/{id}|203.0.113.7", "/|203.0.113.7"})

	// Around the mux there is no pattern yet, and that does not go unseen.
	want(t, "status around the mux", serve(limit(mux), get(client)).Code, http.StatusBadRequest)
}

func TestDefaultKeyIsTheAddress(t *testing.T) {
	lim := says(allowed, nil)
	serve(middleware(t, lim)(ok), get(client, "X-Forwarded-For", "192.0.2.1"))
	wantList(t, "requests", lim.requests(), []hybrid.Request{{Key: "203.0.113.7", N: 1}})
}

// Two middlewares on one limiter share the bucket of a key, and only that.
func TestMiddlewaresShareTheLimiter(t *testing.T) {
	lim := buckets(2)
	first, second := middleware(t, lim)(ok), middleware(t, lim)(ok)
	want(t, "first", serve(first, get(client)).Code, 200)
	want(t, "second", serve(second, get(client)).Code, 200)
	want(t, "first, used up by both", serve(first, get(client)).Code, 429)
	want(t, "another key", serve(second, get("203.0.113.8:1")).Code, 200)
}

// parts makes lists of up to three parts of a text.
func parts(s string) []string {
	var list []string
	for _, p := range strings.SplitN(s, "\n", 3) {
		if p != "" { // a request without one of its parts has no key
			list = append(list, p)
		}
	}
	return list
}

// Different parts never make the same key.
func FuzzKeysDoNotCollide(f *testing.F) {
	f.Add("a\nb", "a|b")
	f.Add("a\\\nb", "a\\|b")
	f.Add("a\\\n\\b", "a\\|\\b")
	f.Add("a|\nb", "a\n|b")
	f.Add("a\nb\nc", "a\nb|c")
	f.Add("a\\|b", "a|b")
	f.Add(strings.Repeat("a", 300), `\#98e7a3e1d2e3e8e6b4a1f3a2`)
	f.Add(strings.Repeat("a", 300)+"\nb", strings.Repeat("a", 300)+"|b")
	f.Add(strings.Repeat("|", 128), strings.Repeat("|", 129))
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := parts(a), parts(b)
		if same := slices.Equal(x, y); (httplimit.Joined(x) == httplimit.Joined(y)) != same && len(x) > 0 && len(y) > 0 {
			t.Errorf("%q and %q: keys %q and %q", x, y, httplimit.Joined(x), httplimit.Joined(y))
		}
		// What looks like a long key's hash is a part like any other.
		if key := httplimit.Joined(x); len(x) > 0 && httplimit.Joined([]string{key}) == key && strings.ContainsAny(key, `\|`) {
			t.Errorf("the key %q of %q is also the key of its own text", key, x)
		}
	})
}
