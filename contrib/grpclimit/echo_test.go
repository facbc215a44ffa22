package grpclimit_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/resilient-go/limiter/contrib/grpclimit"
)

// An echo is a service with one method of each kind. A nil function answers with
// what came.
type echo struct {
	say  func(ctx context.Context, text string) (string, error)
	chat func(s grpc.ServerStream) error
}

var echoService = grpc.ServiceDesc{
	ServiceName: "test.Echo",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{MethodName: "Say", Handler: func(srv any, ctx context.Context, dec func(any) error, mid grpc.UnaryServerInterceptor) (any, error) {
		in := new(wrapperspb.StringValue)
		if err := dec(in); err != nil {
			return nil, err
		}
		handler := func(ctx context.Context, req any) (any, error) {
			e := srv.(*echo)
			if e.say == nil {
				return req, nil
			}
			text, err := e.say(ctx, req.(*wrapperspb.StringValue).GetValue())
			return wrapperspb.String(text), err
		}
		if mid == nil {
			return handler(ctx, in)
		}
		return mid(ctx, in, &grpc.UnaryServerInfo{Server: srv, FullMethod: "/test.Echo/Say"}, handler)
	}}},
	Streams: []grpc.StreamDesc{
		{StreamName: "Chat", ServerStreams: true, ClientStreams: true, Handler: chat},
		{StreamName: "Collect", ClientStreams: true, Handler: chat},
	},
}

var (
	chatDesc    = &echoService.Streams[0]
	collectDesc = &echoService.Streams[1]
)

func chat(srv any, s grpc.ServerStream) error {
	if e := srv.(*echo); e.chat != nil {
		return e.chat(s)
	}
	for {
		m := new(wrapperspb.StringValue)
		if err := s.RecvMsg(m); err != nil {
			return end(err)
		}
		if err := s.SendMsg(m); err != nil {
			return err
		}
	}
}

// serve starts a server and returns a connection to it. Each may be limited.
func serve(t testing.TB, e *echo, s *grpclimit.Server, c *grpclimit.Client) *grpc.ClientConn {
	t.Helper()
	var options []grpc.ServerOption
	if s != nil {
		options = append(options, grpc.UnaryInterceptor(s.Unary), grpc.StreamInterceptor(s.Stream))
	}
	srv := grpc.NewServer(options...)
	srv.RegisterService(&echoService, e)
	pipe := bufconn.Listen(1 << 16)
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(pipe) }()
	t.Cleanup(func() {
		srv.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return dial(t, c, func(ctx context.Context, _ string) (net.Conn, error) { return pipe.DialContext(ctx) })
}

func dial(t testing.TB, c *grpclimit.Client, dialer func(context.Context, string) (net.Conn, error)) *grpc.ClientConn {
	t.Helper()
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(dialer), grpc.WithDisableServiceConfig(),
	}
	if c != nil {
		options = append(options, grpc.WithUnaryInterceptor(c.Unary), grpc.WithStreamInterceptor(c.Stream))
	}
	conn, err := grpc.NewClient("passthrough:///echo", options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// say makes a unary call.
func say(ctx context.Context, conn *grpc.ClientConn, text string) (string, error) {
	out := new(wrapperspb.StringValue)
	err := conn.Invoke(ctx, "/test.Echo/Say", wrapperspb.String(text), out)
	return out.GetValue(), err
}

// open opens a stream of both directions.
func open(t testing.TB, conn *grpc.ClientConn) grpc.ClientStream {
	t.Helper()
	s, err := conn.NewStream(t.Context(), chatDesc, "/test.Echo/Chat")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// talk sends a message and returns the answer.
func talk(s grpc.ClientStream, text string) (string, error) {
	// A server may have ended the stream already: then its status comes with RecvMsg.
	if err := s.SendMsg(wrapperspb.String(text)); err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	out := new(wrapperspb.StringValue)
	err := s.RecvMsg(out)
	return out.GetValue(), err
}
