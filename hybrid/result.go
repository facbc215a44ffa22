package hybrid

import "time"

// A Request asks for N tokens of a key.
type Request struct {
	// Key is whose bucket: a user, an address, a route, a tenant. Any non-empty
	// string; one longer than 256 bytes is stored by its hash.
	Key string
	// N is how many tokens. 0 only looks, as [Limiter.Peek] does.
	N int
	// Priority is how important the request is: [PriorityLow] leaves the last share of
	// the bucket to the others. Default: [PriorityNormal].
	Priority Priority
}

// A Result is a decision.
type Result struct {
	// Allowed reports whether the request was admitted.
	Allowed bool
	// Shadow reports that the request would have been refused, see [WithShadow].
	Shadow bool
	// Source says who decided.
	Source Source
	// Limit is the limit that was applied.
	Limit Limit
	// Remaining is how many tokens are left for the key, as far as is known here:
	// exact when Redis decided, else what this instance holds plus what Redis last
	// told. In an outage: what is left of this instance's part. Always within
	// [0, Burst].
	Remaining int
	// RetryAfter is how long to wait before the same request can pass, if nobody
	// else asks meanwhile. 0 if allowed, positive if not. In an outage it is what
	// this instance's part takes; a request larger than that part's burst passes
	// only when Redis is back.
	RetryAfter time.Duration
	// ResetAfter is how long until the bucket, or in an outage this instance's
	// part, is full if nobody asks.
	ResetAfter time.Duration
}

// A Source says who made a decision.
type Source uint8

// The sources. [Limiter.Take] tells in which order they are asked.
const (
	// SourcePrefilter: the local share of this instance is used up (refusals only).
	SourcePrefilter Source = iota + 1
	// SourceLease: a permit that this instance holds on lease (admissions only).
	SourceLease
	// SourceDenied: refused here without asking, because Redis said no a moment ago,
	// or because this instance has a part of the rate and has used it up (refusals
	// only).
	SourceDenied
	// SourceRedis: Redis, asked for this request.
	SourceRedis
	// SourceDegraded: Redis is slow, down or wrong; decided by the outage policy.
	SourceDegraded
	// SourceRule: the key is [Unlimited] or [Blocked].
	SourceRule

	sources = int(SourceRule) + 1
)

// String is the source in one word, fit for a metric label.
func (s Source) String() string {
	switch s {
	case SourcePrefilter:
		return "prefilter"
	case SourceLease:
		return "lease"
	case SourceDenied:
		return "denied"
	case SourceRedis:
		return "redis"
	case SourceDegraded:
		return "degraded"
	case SourceRule:
		return "rule"
	default:
		return "none"
	}
}
