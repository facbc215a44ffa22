// GRPC: a server that takes three calls per minute from each user, and a client that
// is told when to come again.
//
//	cd examples/grpc && go run .
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/resilient-go/limiter/contrib/grpclimit"
	"github.com/resilient-go/limiter/hybrid"
)

func main() {
	url := flag.String("redis", "", "URL of a Redis server (default: one inside this program)")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *url); err != nil {
		fmt.Fprintln(os.Stderr, "grpc:", err)
		os.Exit(1)
	}
}

// newServer is what a service has: a limiter, and its interceptors.
func newServer(rdb redis.UniversalClient) (*grpc.Server, *hybrid.Limiter, error) {
	lim, err := hybrid.New(rdb, hybrid.PerMinute(3), hybrid.WithName("grpc"), hybrid.WithExpectedInstances(1))
	if err != nil {
		return nil, nil, err
	}
	// Something in front has checked who the user is: else anybody writes what he likes.
	limit, err := grpclimit.NewServer(lim, grpclimit.WithKey(grpclimit.ByMetadata("x-user")))
	if err != nil {
		return nil, nil, err
	}
	srv := grpc.NewServer(grpc.UnaryInterceptor(limit.Unary), grpc.StreamInterceptor(limit.Stream))
	grpc_health_v1.RegisterHealthServer(srv, health.NewServer()) // stands for your service
	return srv, lim, nil
}

func run(ctx context.Context, out io.Writer, url string) error {
	rdb, stop, err := connect(ctx, url)
	if err != nil {
		return err
	}
	defer stop()
	srv, lim, err := newServer(rdb)
	if err != nil {
		return err
	}
	defer func() { _ = lim.Close() }()
	for _, user := range []string{"ann", "bob"} { // forget what the last run used up
		if err := lim.Reset(ctx, user); err != nil {
			return err
		}
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = srv.Serve(ln) }()
	defer func() { srv.Stop(); <-ended }()
	conn, err := grpc.NewClient(ln.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	for _, user := range []string{"ann", "ann", "ann", "ann", "bob"} {
		fmt.Fprintf(out, "%s: %s\n", user, call(ctx, grpc_health_v1.NewHealthClient(conn), user))
	}
	return nil
}

// call makes a call and says how it was answered.
func call(ctx context.Context, client grpc_health_v1.HealthClient, user string) string {
	_, err := client.Check(metadata.AppendToOutgoingContext(ctx, "x-user", user), nil)
	answer := status.Code(err).String()
	for _, detail := range status.Convert(err).Details() {
		switch d := detail.(type) {
		case *errdetails.RetryInfo:
			answer += fmt.Sprintf(", again in %v", d.GetRetryDelay().AsDuration().Round(time.Second))
		case *errdetails.QuotaFailure:
			answer += fmt.Sprintf(", quota %s", d.GetViolations()[0].GetSubject())
		}
	}
	return answer
}
