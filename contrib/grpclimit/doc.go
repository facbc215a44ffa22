// Package grpclimit brings a rate limiter to gRPC: interceptors that limit the
// calls a server takes ([Server]) and those that a client makes ([Client]).
//
//	limit, err := grpclimit.NewServer(lim)
//	…
//	grpc.NewServer(grpc.UnaryInterceptor(limit.Unary), grpc.StreamInterceptor(limit.Stream))
//
// # Refusals
//
// A call that is refused gets the code ResourceExhausted with two details:
// RetryInfo, how long to wait, which is there only if waiting helps, and
// QuotaFailure, the name of the policy. A call that the limiter cannot decide gets a
// neutral Unavailable: it is never a silent pass, and nothing of the error's text
// reaches a client. While Redis is down the limiter still decides, so that is not
// an error.
//
// # Keys
//
// A [Key] says whose bucket a call counts against. The default is the address of
// the peer on a server, and the target on a client.
//
// # Streams
//
// A stream costs one token when it opens. With [WithPerMessage] and
// [WithClientPerMessage] its messages are asked for instead.
package grpclimit
