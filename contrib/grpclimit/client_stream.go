package grpclimit

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
)

// Stream is a [grpc.StreamClientInterceptor].
func (c *Client) Stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	call := Call{Method: method, Target: target(cc)}
	cancel := func() {}
	if c.messages == 0 {
		if err := c.admit(ctx, call); err != nil {
			return nil, err
		}
	} else {
		// A message that does not get its token ends the stream, as grpc.ClientStream
		// promises for errors.
		ctx, cancel = context.WithCancel(ctx)
	}
	stream, err := streamer(ctx, desc, cc, method, opts...)
	if err != nil {
		cancel()
		c.heed(ctx, call, err)
		return nil, err
	}
	return &clientStream{ClientStream: stream, client: c, ctx: ctx, call: call, cancel: cancel, single: !desc.ServerStreams}, nil
}

// A clientStream sees the messages and how the stream ends.
type clientStream struct {
	grpc.ClientStream
	client *Client
	ctx    context.Context
	call   Call
	cancel func()
	single bool // one message is all that the server sends
}

func (s *clientStream) RecvMsg(m any) error {
	if err := s.ClientStream.RecvMsg(m); err != nil {
		return s.ended(err)
	}
	err := s.admit(Received, m)
	if err != nil || s.single {
		s.cancel()
	}
	return err
}

func (s *clientStream) SendMsg(m any) error {
	if err := s.admit(Sent, m); err != nil {
		s.cancel()
		return err
	}
	err := s.ClientStream.SendMsg(m)
	if err != nil && !errors.Is(err, io.EOF) { // after EOF the status comes with RecvMsg
		return s.ended(err)
	}
	return err
}

// ended notes how the stream has ended, and frees what it held.
func (s *clientStream) ended(err error) error {
	s.cancel()
	s.client.heed(s.ctx, s.call, err)
	return err
}

func (s *clientStream) admit(what Messages, m any) error {
	if s.client.messages&what == 0 {
		return nil
	}
	call := s.call
	call.Message = m
	return s.client.admit(s.ctx, call)
}
