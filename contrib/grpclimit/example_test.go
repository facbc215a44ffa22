package grpclimit_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/resilient-go/limiter/contrib/grpclimit"
	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/hybrid/httplimit"
)

// newLimiter makes a limiter on a Redis for this example.
func newLimiter(limit hybrid.Limit) (lim *hybrid.Limiter, stop func()) {
	redisServer, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	// The defaults take a Redis that is slower than 50 ms for an outage, which says
	// little on a busy test machine.
	const patience = 5 * time.Second
	rdb := redis.NewUniversalClient(hybrid.RedisOptionsFor(patience, redisServer.Addr()))
	lim, err = hybrid.New(rdb, limit, hybrid.WithRemoteTimeout(patience), hybrid.WithLeaseHorizon(5*time.Second),
		hybrid.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		log.Fatal(err)
	}
	return lim, func() {
		_ = lim.Close()
		_ = rdb.Close()
		redisServer.Close()
	}
}

// healthServer runs a server with one service, for this example.
func healthServer(options ...grpc.ServerOption) (dialer grpc.DialOption, stop func()) {
	srv := grpc.NewServer(options...)
	grpc_health_v1.RegisterHealthServer(srv, health.NewServer())
	listener := bufconn.Listen(1 << 16)
	go func() { _ = srv.Serve(listener) }()
	return grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		return listener.DialContext(ctx)
	}), srv.Stop
}

// A server that limits each user, by a value that an authentication in front has
// checked.
func ExampleNewServer() {
	lim, stop := newLimiter(hybrid.PerHour(2))
	defer stop()

	limit, err := grpclimit.NewServer(lim, grpclimit.WithKey(grpclimit.ByMetadata("x-user")))
	if err != nil {
		log.Fatal(err)
	}
	dialer, stop := healthServer(grpc.UnaryInterceptor(limit.Unary), grpc.StreamInterceptor(limit.Stream))
	defer stop()

	conn, err := grpc.NewClient("passthrough:///api", dialer, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ctx := metadata.AppendToOutgoingContext(context.Background(), "x-user", "ann")
	for range 3 {
		_, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, nil)
		fmt.Println(status.Code(err))
		for _, detail := range status.Convert(err).Details() {
			if info, ok := detail.(*errdetails.RetryInfo); ok {
				fmt.Println("again in", info.GetRetryDelay().AsDuration().Round(time.Minute))
			}
		}
	}
	// Output:
	// OK
	// OK
	// ResourceExhausted
	// again in 30m0s
}

// A client that keeps within somebody else's quota, and does not wait.
func ExampleNewClient() {
	lim, stop := newLimiter(hybrid.PerHour(2))
	defer stop()
	dialer, stop := healthServer()
	defer stop()

	limit, err := grpclimit.NewClient(lim, grpclimit.WithFailFast())
	if err != nil {
		log.Fatal(err)
	}
	conn, err := grpc.NewClient("passthrough:///api", dialer, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(limit.Unary), grpc.WithStreamInterceptor(limit.Stream))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for range 3 {
		_, err := grpc_health_v1.NewHealthClient(conn).Check(context.Background(), nil)
		var limited *grpclimit.LimitedError
		if errors.As(err, &limited) {
			fmt.Println("not sent; the remote side asked for it:", limited.Remote)
			continue
		}
		fmt.Println(status.Code(err))
	}
	// Output:
	// OK
	// OK
	// not sent; the remote side asked for it: false
}

// One bucket for each method and tenant, where the tenant was put into the context
// by an interceptor in front.
func ExampleByFunc() {
	type tenantKey struct{}
	byTenant := grpclimit.ByFunc(func(ctx context.Context, _ grpclimit.Call) string {
		tenant, _ := ctx.Value(tenantKey{}).(string)
		return tenant
	})
	lim, stop := newLimiter(hybrid.PerHour(2))
	defer stop()
	_, err := grpclimit.NewServer(lim, grpclimit.WithKey(grpclimit.ByMethod(), byTenant))
	fmt.Println(err)
	// Output: <nil>
}

// Behind a load balancer the client's address is in the metadata.
func ExampleByIP() {
	lim, stop := newLimiter(hybrid.PerHour(2))
	defer stop()
	_, err := grpclimit.NewServer(lim, grpclimit.WithKey(
		grpclimit.ByIP(httplimit.TrustProxies(netip.MustParsePrefix("10.0.0.0/8"))),
	))
	fmt.Println(err)
	// Output: <nil>
}

// Health checks are free.
func ExampleWithCost() {
	lim, stop := newLimiter(hybrid.PerHour(2))
	defer stop()
	_, err := grpclimit.NewServer(lim, grpclimit.WithCost(func(_ context.Context, c grpclimit.Call) int {
		if c.Method == grpc_health_v1.Health_Check_FullMethodName {
			return 0
		}
		return 1
	}))
	fmt.Println(err)
	// Output: <nil>
}
