package remote_test

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/redis/go-redis/v9"
)

// A hook sees what go-redis sends, and may answer in place of the server.
type hook struct {
	mu     sync.Mutex
	sizes  []int // of the pipelines, 1 for a single command
	ctxs   []context.Context
	before func(cmds []redis.Cmder) error
}

func (h *hook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (h *hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := h.see(ctx, cmd); err != nil {
			return done(err)
		}
		return next(ctx, cmd)
	}
}

func (h *hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if err := h.see(ctx, cmds...); err != nil {
			return done(err)
		}
		return next(ctx, cmds)
	}
}

// errAnswered says that a hook has set the answer.
var errAnswered = errors.New("answered")

func done(err error) error {
	if errors.Is(err, errAnswered) {
		return nil
	}
	return err
}

func (h *hook) see(ctx context.Context, cmds ...redis.Cmder) error {
	if name := cmds[0].Name(); name != "evalsha" && name != "eval" {
		return nil // the handshake
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sizes = append(h.sizes, len(cmds))
	h.ctxs = append(h.ctxs, ctx)
	if h.before != nil {
		return h.before(cmds)
	}
	return nil
}

// taken returns the sizes since the last time.
func (h *hook) taken() []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sizes
	h.sizes = nil
	return s
}

// answer makes a hook that puts a value in place of each reply.
func answer(v any) *hook {
	return &hook{before: func(cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			cmd.(interface{ SetVal(any) }).SetVal(v)
		}
		return errAnswered
	}}
}
