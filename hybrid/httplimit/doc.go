// Package httplimit brings a rate limiter to net/http: a middleware that limits
// the requests a server takes, and a [Transport] that limits those a client makes.
//
//	limit, err := httplimit.New(lim, httplimit.WithKey(httplimit.ByIP()))
//	…
//	http.ListenAndServe(addr, limit(mux))
//
// # Refusals
//
// A request that is refused gets status 429 with Retry-After in whole seconds,
// rounded up and at least 1. Every answer to a request that was decided carries
// RateLimit and RateLimit-Policy. An error of the limiter is a neutral 503: it is
// never a silent pass, and nothing of its text reaches a client. While Redis is
// down the limiter still decides, so that is not an error.
//
// # Keys
//
// A [Key] says whose bucket a request counts against. The default is the client's
// address as the server sees it; headers that name another address are believed
// only when proxies are trusted by [TrustProxies] or [TrustHops].
//
// # The RateLimit fields
//
// They follow draft-ietf-httpapi-ratelimit-headers by its text of revision 11
// (May 2026); revision 12 (November 2026) is the newest. A policy "100/s" is
// q=100;w=1. A window is a whole number of seconds, so a limit of 10 in 200 ms is
// told as q=50;w=1. A burst that differs from q is told by the parameter
// limiter-burst. In RateLimit, r is what remains, and t is the time in which the
// limit's rate makes up r tokens, or the next one if r is 0: a client that spreads
// r over t keeps to the rate. In a refusal t is what Retry-After says. Limiters that
// are nested give one list member each; of two members of one policy the stricter
// stays.
package httplimit
