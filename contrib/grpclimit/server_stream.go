package grpclimit

import (
	"context"

	"google.golang.org/grpc"
)

// Stream is a [grpc.StreamServerInterceptor].
func (s *Server) Stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	c := Call{Method: info.FullMethod}
	if s.messages != 0 {
		return handler(srv, &serverMessages{ss, s, c})
	}
	ctx, err := s.decide(ss.Context(), c)
	if err != nil {
		return err
	}
	return handler(srv, &serverStream{ss, ctx})
}

// A serverStream has the decision in its context.
type serverStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *serverStream) Context() context.Context { return s.ctx }

// serverMessages are decided one by one.
type serverMessages struct {
	grpc.ServerStream
	server *Server
	call   Call
}

func (s *serverMessages) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	return s.decide(Received, m)
}

func (s *serverMessages) SendMsg(m any) error {
	if err := s.decide(Sent, m); err != nil {
		return err
	}
	return s.ServerStream.SendMsg(m)
}

func (s *serverMessages) decide(what Messages, m any) error {
	if s.server.messages&what == 0 {
		return nil
	}
	c := s.call
	c.Message = m
	_, err := s.server.decide(s.Context(), c)
	return err
}
