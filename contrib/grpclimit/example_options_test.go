package grpclimit_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/resilient-go/limiter/contrib/grpclimit"
	"github.com/resilient-go/limiter/hybrid"
)

// deny is a limiter for tests of a user, without a Redis.
type deny struct{ source hybrid.Source }

func (d deny) Take(context.Context, hybrid.Request) (hybrid.Result, error) {
	return hybrid.Result{Limit: hybrid.PerMinute(5), Source: d.source, RetryAfter: 12 * time.Second}, nil
}

func (d deny) WaitN(ctx context.Context, _ string, _ int) (hybrid.Result, error) {
	return hybrid.Result{}, ctx.Err()
}

// called is what a client sees that calls a server with such a limit.
func called(lim grpclimit.Limiter, options ...grpclimit.Option) *status.Status {
	limit, err := grpclimit.NewServer(lim, append(options, grpclimit.WithLogger(slog.New(slog.DiscardHandler)))...)
	if err != nil {
		log.Fatal(err)
	}
	_, err = limit.Unary(context.Background(), nil, &grpc.UnaryServerInfo{FullMethod: "/shop.Orders/Place"},
		func(context.Context, any) (any, error) { return nil, nil })
	return status.Convert(err)
}

// A code of one's own, and another one for the time in which Redis is down.
func ExampleWithCode() {
	options := []grpclimit.Option{
		grpclimit.WithCode(codes.FailedPrecondition), grpclimit.WithDegradedCode(codes.Unavailable),
	}
	fmt.Println(called(deny{hybrid.SourceRedis}, options...).Code())
	fmt.Println(called(deny{hybrid.SourceDegraded}, options...).Code())
	// Output:
	// FailedPrecondition
	// Unavailable
}

// Which quota is it that is used up?
func ExampleWithKeyInDetails() {
	refused := called(deny{},
		grpclimit.WithKey(grpclimit.Join(grpclimit.Fixed("orders"), grpclimit.ByMethod())),
		grpclimit.WithKeyInDetails(), grpclimit.WithPolicyName("per method"))
	for _, detail := range refused.Details() {
		if quota, ok := detail.(*errdetails.QuotaFailure); ok {
			fmt.Println(quota.GetViolations()[0].GetSubject())
		}
	}
	// Output: orders|/shop.Orders/Place
}

func ExampleWithOnLimited() {
	fmt.Println(called(deny{}, grpclimit.WithOnLimited(func(_ context.Context, c grpclimit.Call, res hybrid.Result) error {
		return status.Errorf(codes.ResourceExhausted, "%s: %s, again in %s", c.Method, res.Limit, res.RetryAfter)
	})).Message())
	// Output: /shop.Orders/Place: 5/m, again in 12s
}

// A call that cannot be decided, here because it has no key.
func ExampleWithOnError() {
	key := grpclimit.WithKey(grpclimit.ByMetadata("x-user"))
	fmt.Println(called(deny{}, key).Code())
	fmt.Println(called(deny{}, key, grpclimit.WithEmptyKeyPassed()).Code())
	fmt.Println(called(deny{}, key, grpclimit.WithOnError(func(_ context.Context, _ grpclimit.Call, err error) error {
		if errors.Is(err, grpclimit.ErrNoKey) {
			return status.Error(codes.Unauthenticated, "who are you?")
		}
		return err
	})).Code())
	// Output:
	// InvalidArgument
	// OK
	// Unauthenticated
}

// The decision, inside of a handler.
func ExampleFromContext() {
	lim, stop := newLimiter(hybrid.PerHour(100))
	defer stop()
	limit, err := grpclimit.NewServer(lim)
	if err != nil {
		log.Fatal(err)
	}
	_, err = limit.Unary(context.Background(), nil, &grpc.UnaryServerInfo{FullMethod: "/shop.Orders/Place"},
		func(ctx context.Context, _ any) (any, error) {
			res, ok := grpclimit.FromContext(ctx)
			fmt.Println(ok, res.Remaining, "of", res.Limit)
			return nil, nil
		})
	fmt.Println(err)
	// Output:
	// true 99 of 100/h
	// <nil>
}

// Streams are asked for message by message, on both sides.
func ExampleWithPerMessage() {
	lim, stop := newLimiter(hybrid.PerHour(100))
	defer stop()
	server, err := grpclimit.NewServer(lim, grpclimit.WithPerMessage(grpclimit.Received), grpclimit.WithLogger(slog.Default()))
	fmt.Println(server != nil, err)
	client, err := grpclimit.NewClient(lim, grpclimit.WithClientPerMessage(grpclimit.Sent))
	fmt.Println(client != nil, err)
	// Output:
	// true <nil>
	// true <nil>
}

// A client's quota by the account at the remote side, which may pause us for a minute
// at most.
func ExampleWithClientKey() {
	lim, stop := newLimiter(hybrid.PerHour(1))
	defer stop()
	dialer, stopServer := healthServer()
	defer stopServer()
	limit, err := grpclimit.NewClient(lim,
		grpclimit.WithClientKey(grpclimit.Fixed("account 7"), grpclimit.ByTarget()),
		grpclimit.WithClientCost(func(_ context.Context, c grpclimit.Call) int {
			if c.Method == grpc_health_v1.Health_Check_FullMethodName {
				return 0 // free there
			}
			return 1
		}),
		grpclimit.WithPauseKey(grpclimit.ByTarget()),
		grpclimit.WithMaxPause(time.Minute), grpclimit.WithMaxPauses(100))
	if err != nil {
		log.Fatal(err)
	}
	conn, err := grpc.NewClient("passthrough:///api", dialer, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(limit.Unary))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for range 3 {
		_, err := grpc_health_v1.NewHealthClient(conn).Check(context.Background(), nil)
		fmt.Println(status.Code(err))
	}
	// Output:
	// OK
	// OK
	// OK
}

// What the remote side asks for goes unheeded.
func ExampleWithoutPauses() {
	_, err := grpclimit.NewClient(deny{}, grpclimit.WithoutPauses())
	fmt.Println(err)
	_, err = grpclimit.NewClient(deny{}, grpclimit.WithoutPauses(), grpclimit.WithPauseKey(grpclimit.ByTarget()))
	fmt.Println(err != nil)
	// Output:
	// <nil>
	// true
}
