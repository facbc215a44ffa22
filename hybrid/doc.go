// Package hybrid is a rate limiter for services with more than one instance.
//
// All instances that use the same Redis and the same [WithName] keep one limit
// per key between them. Almost every request is decided in process, from
// permits that the instance holds on lease: Redis cuts them from the key's
// token bucket before they are spent, so that all instances together never
// admit more than the one bucket would. When Redis is slow, down or wrong, a
// circuit breaker opens and each instance goes on with its fair part of the
// limit; when Redis is back, so is the limiter.
//
//	lim, err := hybrid.New(rdb, hybrid.PerSecond(100))
//	…
//	defer lim.Close()
//
//	res, err := lim.Allow(ctx, "user:10001")
//	if err != nil {
//		return err // a bad argument, a closed limiter or an ended context, never an outage
//	}
//	if !res.Allowed {
//		return tooManyRequests(res.RetryAfter)
//	}
//
// What happens to a request is told by [Limiter.Take], and in the code by
// take.go, read downwards.
package hybrid
