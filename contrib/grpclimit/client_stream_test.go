package grpclimit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/resilient-go/limiter/contrib/grpclimit"
)

// ended reports when a handler's stream has ended.
func ended(done chan<- error) *echo {
	return &echo{chat: func(s grpc.ServerStream) error {
		err := chat(&echo{}, s)
		done <- s.Context().Err()
		return err
	}}
}

func TestClientStreamsCostWhenTheyOpen(t *testing.T) {
	lim := first(1)
	conn := serve(t, &echo{}, nil, client(t, lim, grpclimit.WithFailFast()))
	s := open(t, conn)
	for _, text := range []string{"one", "two"} {
		got, err := talk(s, text)
		want(t, "answer", got, text)
		want(t, "error", err, nil)
	}
	_, err := conn.NewStream(t.Context(), chatDesc, "/test.Echo/Chat")
	wantStatus(t, err, codes.ResourceExhausted, ownQuota, 10*time.Millisecond, "")
	want(t, "asked", fmt.Sprint(lim.costs()), "[{passthrough:///echo 1} {passthrough:///echo 1}]")
}

func TestClientStreamsCostPerMessage(t *testing.T) {
	for what, wanted := range map[grpclimit.Messages]string{
		grpclimit.Sent:                      "[one two]",
		grpclimit.Received:                  "[one two]",
		grpclimit.Sent | grpclimit.Received: "[one one two two]",
	} {
		lim := says(allowed, nil)
		var texts []string
		c := client(t, lim, grpclimit.WithClientPerMessage(what), grpclimit.WithClientCost(func(_ context.Context, c grpclimit.Call) int {
			texts = append(texts, c.Message.(*wrapperspb.StringValue).GetValue())
			return 1
		}))
		s := open(t, serve(t, &echo{}, nil, c))
		for _, text := range []string{"one", "two"} {
			got, err := talk(s, text)
			want(t, "answer", got, text)
			want(t, "error", err, nil)
		}
		if err := s.CloseSend(); err != nil {
			t.Fatal(err)
		}
		want(t, "the end", s.RecvMsg(new(wrapperspb.StringValue)), io.EOF) // it costs nothing
		want(t, "asked for", fmt.Sprint(texts), wanted)
		want(t, "requests", len(lim.requests()), len(texts))
	}
}

// TestMessageWithoutATokenEndsTheStream on both sides, as the rules of gRPC say
// for an error of SendMsg or RecvMsg.
func TestMessageWithoutATokenEndsTheStream(t *testing.T) {
	for _, what := range []grpclimit.Messages{grpclimit.Sent, grpclimit.Received} {
		done := make(chan error, 1)
		conn := serve(t, ended(done), nil, client(t, first(1), grpclimit.WithClientPerMessage(what), grpclimit.WithFailFast()))
		s := open(t, conn)
		_, err := talk(s, "one")
		want(t, "error", err, nil)
		_, err = talk(s, "two")
		wantStatus(t, err, codes.ResourceExhausted, ownQuota, 10*time.Millisecond, "")
		want(t, "at the server", <-done, context.Canceled)
		want(t, "afterwards", status.Code(s.RecvMsg(new(wrapperspb.StringValue))), codes.Canceled)
	}
}

// TestStreamsLeaveNothingBehind: what per-message streams hold ends with them,
// however they end.
func TestStreamsLeaveNothingBehind(t *testing.T) {
	no := status.Error(codes.Aborted, "no")
	for name, test := range map[string]struct {
		desc *grpc.StreamDesc
		chat func(s grpc.ServerStream) error
		want error
	}{
		"success": {chatDesc, nil, io.EOF},
		"failure": {chatDesc, func(grpc.ServerStream) error { return no }, no},
		"one answer": {collectDesc, func(s grpc.ServerStream) error {
			return s.SendMsg(wrapperspb.String("all"))
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var inner context.Context
			c := client(t, says(allowed, nil), grpclimit.WithClientPerMessage(grpclimit.Sent))
			conn := serve(t, &echo{chat: test.chat}, nil, nil)
			s, err := c.Stream(t.Context(), test.desc, conn, "/test.Echo/"+test.desc.StreamName,
				func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
					inner = ctx
					return cc.NewStream(ctx, desc, method, opts...)
				})
			if err != nil {
				t.Fatal(err)
			}
			want(t, "at first", inner.Err(), nil)
			if err := s.CloseSend(); err != nil {
				t.Fatal(err)
			}
			if err := s.RecvMsg(new(wrapperspb.StringValue)); !errors.Is(err, test.want) && status.Code(err) != status.Code(test.want) {
				t.Errorf("the end is %v, want %v", err, test.want)
			}
			want(t, "in the end", inner.Err(), context.Canceled)
		})
	}
	var inner context.Context
	c := client(t, says(allowed, nil), grpclimit.WithClientKey(grpclimit.ByMethod()), grpclimit.WithClientPerMessage(grpclimit.Sent))
	_, err := c.Stream(t.Context(), chatDesc, nil, method,
		func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
			inner = ctx
			return nil, no
		})
	want(t, "error", err, no)
	want(t, "not opened", inner.Err(), context.Canceled)
}

// TestStreamsMakePauses: with the error that opens them, that ends them, and that
// answers a message.
func TestStreamsMakePauses(t *testing.T) {
	asked := answer(t, codes.ResourceExhausted, after(time.Hour))
	e := &echo{chat: func(grpc.ServerStream) error { return asked }}
	for _, options := range [][]grpclimit.ClientOption{{}, {grpclimit.WithClientPerMessage(grpclimit.Sent)}} {
		c := client(t, says(allowed, nil), append(options, grpclimit.WithFailFast())...)
		conn := serve(t, e, nil, c)
		s := open(t, conn)
		err := error(nil)
		for err == nil {
			err = s.SendMsg(wrapperspb.String("one"))
		}
		want(t, "while sending", err, io.EOF) // the status comes with RecvMsg
		want(t, "code", status.Code(s.RecvMsg(new(wrapperspb.StringValue))), codes.ResourceExhausted)
		again, err := conn.NewStream(t.Context(), chatDesc, "/test.Echo/Chat")
		if err == nil { // its messages are held up
			err = again.SendMsg(wrapperspb.String("one"))
		}
		var limited *grpclimit.LimitedError
		if !errors.As(err, &limited) || !limited.Remote || limited.RetryAfter > 10*time.Minute || limited.RetryAfter < 5*time.Minute {
			t.Fatalf("the next stream: %v", err)
		}
		want(t, "key", limited.Key, "passthrough:///echo|/test.Echo/Chat")
		if _, err := say(t.Context(), conn, "hello"); err != nil {
			t.Errorf("another method: %v", err)
		}
	}
	c := client(t, says(allowed, nil), grpclimit.WithFailFast(), grpclimit.WithClientKey(grpclimit.ByMethod()), grpclimit.WithPauseKey(grpclimit.ByMethod()))
	refuse := func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
		return nil, asked
	}
	_, err := c.Stream(t.Context(), chatDesc, nil, method, refuse)
	want(t, "error", err, asked)
	_, err = c.Stream(t.Context(), chatDesc, nil, method, refuse)
	var limited *grpclimit.LimitedError
	want(t, "held up", errors.As(err, &limited), true)
}

// A stream whose other side has ended it.
type endedStream struct{ grpc.ClientStream }

func (endedStream) SendMsg(any) error { return io.EOF }

// TestStatusIsAwaited: after an EOF of SendMsg the status comes with RecvMsg, unless
// the stream is canceled before.
func TestStatusIsAwaited(t *testing.T) {
	var inner context.Context
	c := client(t, says(allowed, nil), grpclimit.WithClientKey(grpclimit.ByMethod()), grpclimit.WithClientPerMessage(grpclimit.Sent))
	s, err := c.Stream(t.Context(), chatDesc, nil, method,
		func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
			inner = ctx
			return endedStream{}, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "SendMsg", s.SendMsg(wrapperspb.String("one")), io.EOF)
	want(t, "not canceled", inner.Err(), nil)
}
