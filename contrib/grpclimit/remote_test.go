package grpclimit_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/resilient-go/limiter/contrib/grpclimit"
	"github.com/resilient-go/limiter/hybrid"
	"github.com/resilient-go/limiter/internal/redistest"
)

// TestServersShareALimit, through leases and refusals, and the details are exact.
func TestServersShareALimit(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		var conns []*grpc.ClientConn
		for range 2 {
			conns = append(conns, serve(t, &echo{}, server(t, start(t, r, hybrid.PerMinute(6))), nil))
		}
		for i := range 6 {
			got, err := say(t.Context(), conns[i%2], "hello")
			want(t, "answer", got, "hello")
			want(t, "error", err, nil)
		}
		for _, conn := range conns {
			_, err := say(t.Context(), conn, "hello")
			wantStatus(t, err, codes.ResourceExhausted, usedUp, 10*time.Second, "6/m")
		}
		time.Sleep(10 * time.Second)
		_, err := say(t.Context(), conns[0], "hello")
		want(t, "error", err, nil)
		_, err = say(t.Context(), conns[1], "hello")
		wantStatus(t, err, codes.ResourceExhausted, usedUp, 10*time.Second, "6/m")
	})
}

// TestOutageIsNoError: the limiter goes on with this instance's part, and nothing
// of Redis is told.
func TestOutageIsNoError(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerMinute(60), hybrid.WithExpectedInstances(10))
		conn := serve(t, &echo{}, server(t, lim, grpclimit.WithDegradedCode(codes.Unavailable)), nil)
		r.Kill()
		passed, refusals := 0, 0
		for range 60 {
			switch _, err := say(t.Context(), conn, "hello"); status.Code(err) {
			case codes.OK:
				passed++
			case codes.Unavailable:
				refusals++
				if st := status.Convert(err); st.Message() != reduced || len(st.Details()) != 2 || strings.Contains(st.Proto().String(), "6379") {
					t.Errorf("refused with %v", st.Proto())
				}
			default:
				t.Errorf("answered with %v", err)
			}
		}
		want(t, "passed", passed, 6)
		want(t, "refused", refusals, 54)
	})
}

func TestClosedLimiterIsUnavailable(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		lim := start(t, r, hybrid.PerMinute(60))
		if err := lim.Close(); err != nil {
			t.Fatal(err)
		}
		_, err := say(t.Context(), serve(t, &echo{}, server(t, lim), nil), "hello")
		wantStatus(t, err, codes.Unavailable, unable, 0, "")
		_, err = say(t.Context(), serve(t, &echo{}, nil, client(t, lim)), "hello")
		wantStatus(t, err, codes.Unavailable, unable, 0, "")
		want(t, "is ErrClosed", errors.Is(err, hybrid.ErrClosed), true)
	})
}

// TestCallsThatEndWhileRedisIsAsked have the code of their end.
func TestCallsThatEndWhileRedisIsAsked(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		s := server(t, start(t, r, hybrid.PerMinute(60)))
		r.Freeze()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		begun := time.Now()
		handled, err := call(ctx, s, nil)
		want(t, "handled", handled, false)
		want(t, "after", time.Since(begun), 10*time.Millisecond)
		wantStatus(t, err, codes.DeadlineExceeded, "context deadline exceeded", 0, "")
	})
}

func TestClientsShareAQuota(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		var conns []*grpc.ClientConn
		for range 2 {
			conns = append(conns, serve(t, &echo{}, nil, client(t, start(t, r, hybrid.PerSecond(1).WithBurst(2)))))
		}
		begun := time.Now()
		for i := range 6 { // two at once, and one each second
			if _, err := say(t.Context(), conns[i%2], "hello"); err != nil {
				t.Fatal(err)
			}
		}
		want(t, "after", time.Since(begun).Round(time.Millisecond), 4*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, err := say(ctx, conns[0], "hello")
		want(t, "is ErrWouldExceedDeadline", errors.Is(err, hybrid.ErrWouldExceedDeadline), true)
		want(t, "code", status.Code(err), codes.DeadlineExceeded)
	})
}

// TestClientHeedsAServer that refuses it: the next call waits for as long as the
// server said, and is served.
func TestClientHeedsAServer(t *testing.T) {
	bubble(t, func(t *testing.T, r *redistest.Mini) {
		served := 0
		e := &echo{say: func(_ context.Context, text string) (string, error) {
			served++
			return text, nil
		}}
		theirs := server(t, start(t, r, hybrid.PerMinute(6).WithBurst(1), hybrid.WithName("theirs")))
		ours := client(t, start(t, r, hybrid.PerSecond(100), hybrid.WithName("ours")))
		conn := serve(t, e, theirs, ours)
		begun := time.Now()
		for i, wanted := range []codes.Code{codes.OK, codes.ResourceExhausted, codes.OK} {
			_, err := say(t.Context(), conn, "hello")
			want(t, "code", status.Code(err), wanted)
			want(t, "after", time.Since(begun).Round(time.Millisecond), time.Duration(i/2)*10*time.Second)
		}
		want(t, "served", served, 2)
	})
}

// TestAddressOverTCP is that of the connection, and its port does not count.
func TestAddressOverTCP(t *testing.T) {
	lim := says(allowed, nil)
	s := server(t, lim, grpclimit.WithKey(grpclimit.ByIP()))
	srv := grpc.NewServer(grpc.UnaryInterceptor(s.Unary))
	srv.RegisterService(&echoService, &echo{say: func(ctx context.Context, _ string) (string, error) {
		p, _ := peer.FromContext(ctx)
		return p.Addr.String(), nil
	}})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(listener) }()
	t.Cleanup(func() {
		srv.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	seen := map[string]bool{}
	for range 2 {
		conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		from, err := say(t.Context(), conn, "")
		if err != nil {
			t.Fatal(err)
		}
		seen[from] = true
	}
	want(t, "connections", len(seen), 2)
	for _, r := range lim.requests() {
		want(t, "request", r, hybrid.Request{Key: "127.0.0.1", N: 1})
	}
	want(t, "requests", len(lim.requests()), 2)
}
