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
	"github.com/resilient-go/limiter/hybrid"
)

// end is what a handler returns when RecvMsg has failed.
func end(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func TestStreamsCostWhenTheyOpen(t *testing.T) {
	lim := first(1)
	var seen []string
	e := &echo{chat: func(s grpc.ServerStream) error {
		res, ok := grpclimit.FromContext(s.Context())
		seen = append(seen, fmt.Sprint(res.Source, ok))
		return chat(&echo{}, s)
	}}
	conn := serve(t, e, server(t, lim, grpclimit.WithKey(grpclimit.ByMethod())), nil)
	s := open(t, conn)
	for _, text := range []string{"one", "two", "three"} {
		got, err := talk(s, text)
		want(t, "answer", got, text)
		want(t, "error", err, nil)
	}
	_, err := talk(open(t, conn), "no")
	wantStatus(t, err, codes.ResourceExhausted, usedUp, 10*time.Millisecond, "100/s")
	want(t, "asked", fmt.Sprint(lim.costs()), "[{/test.Echo/Chat 1} {/test.Echo/Chat 1}]")
	want(t, "handled", fmt.Sprint(seen), "[lease true]")
	if err := s.CloseSend(); err != nil {
		t.Fatal(err)
	}
	want(t, "the end", s.RecvMsg(new(wrapperspb.StringValue)), io.EOF)
}

func TestStreamsCostPerMessage(t *testing.T) {
	for what, wanted := range map[grpclimit.Messages]string{
		grpclimit.Received:                  "[one two]",
		grpclimit.Sent:                      "[ONE TWO]",
		grpclimit.Received | grpclimit.Sent: "[one ONE two TWO]",
	} {
		lim := says(allowed, nil)
		e := &echo{chat: func(s grpc.ServerStream) error {
			if _, ok := grpclimit.FromContext(s.Context()); ok {
				t.Error("the stream itself was decided")
			}
			for {
				m := new(wrapperspb.StringValue)
				if err := s.RecvMsg(m); err != nil {
					return end(err)
				}
				if err := s.SendMsg(wrapperspb.String(map[string]string{"one": "ONE", "two": "TWO"}[m.GetValue()])); err != nil {
					return err
				}
			}
		}}
		var texts []string
		conn := serve(t, e, server(t, lim, grpclimit.WithPerMessage(what), grpclimit.WithKey(grpclimit.Fixed("k")),
			grpclimit.WithCost(func(_ context.Context, c grpclimit.Call) int {
				text := c.Message.(*wrapperspb.StringValue).GetValue()
				texts = append(texts, text)
				return len(text)
			})), nil)
		s := open(t, conn)
		for _, text := range []string{"one", "two"} {
			if _, err := talk(s, text); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.CloseSend(); err != nil {
			t.Fatal(err)
		}
		want(t, "the end", s.RecvMsg(new(wrapperspb.StringValue)), io.EOF) // it costs nothing
		want(t, "asked for", fmt.Sprint(texts), wanted)
		for _, r := range lim.requests() {
			want(t, "request", r, hybrid.Request{Key: "k", N: 3})
		}
		want(t, "requests", len(lim.requests()), len(texts))
	}
}

// TestRefusedMessages end the stream if the handler returns their error.
func TestRefusedMessages(t *testing.T) {
	for _, what := range []grpclimit.Messages{grpclimit.Received, grpclimit.Sent} {
		conn := serve(t, &echo{}, server(t, first(2), grpclimit.WithPerMessage(what)), nil)
		s := open(t, conn)
		for _, text := range []string{"one", "two"} {
			got, err := talk(s, text)
			want(t, "answer", got, text)
			want(t, "error", err, nil)
		}
		_, err := talk(s, "three")
		wantStatus(t, err, codes.ResourceExhausted, usedUp, 10*time.Millisecond, "100/s")
		// Unary calls are asked for as ever.
		_, err = say(t.Context(), conn, "hello")
		want(t, "code", status.Code(err), codes.ResourceExhausted)
	}
}

// TestHandlerMayGoOn after a refused message, which is dropped.
func TestHandlerMayGoOn(t *testing.T) {
	n := 0
	lim := &fake{answer: func(hybrid.Request) (hybrid.Result, error) {
		if n++; n == 2 {
			return refused, nil
		}
		return allowed, nil
	}}
	e := &echo{chat: func(s grpc.ServerStream) error {
		for {
			m := new(wrapperspb.StringValue)
			err := s.RecvMsg(m)
			switch {
			case status.Code(err) == codes.ResourceExhausted:
				m = wrapperspb.String("slower")
			case err != nil:
				return end(err)
			}
			if err := s.SendMsg(m); err != nil {
				return err
			}
		}
	}}
	s := open(t, serve(t, e, server(t, lim, grpclimit.WithPerMessage(grpclimit.Received)), nil))
	for _, pair := range [][2]string{{"one", "one"}, {"two", "slower"}, {"three", "three"}} {
		got, err := talk(s, pair[0])
		want(t, "answer", got, pair[1])
		want(t, "error", err, nil)
	}
}
