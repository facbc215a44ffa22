// Package remote asks Redis: it names keys, encodes messages, sends them in
// pipelines under a bound of its own, decodes the answers and gives each error
// a [Class].
//
// It is the only package that speaks to go-redis. Calls run in goroutines that
// the [Client] owns, detached from any caller's context, because go-redis
// ignores deadlines by default and a deadline passed through would close
// connections on a healthy server. No call is ever sent twice.
package remote
