package hybrid

import (
	"context"
	"sync/atomic"
)

// A Key is a handle for one key of a limiter: its decisions are those of the
// limiter's own methods, without looking the key up each time. It suits a limit
// that is asked for very often under one key, such as that of a third party's
// service. It may be used by many goroutines at once and needs no Close.
type Key struct {
	l    *Limiter
	name string
	e    atomic.Pointer[entry] // of the last look-up; it may have been forgotten since
}

// Key returns a handle. It neither asks Redis nor remembers the key: an empty key
// is refused by the methods of the handle.
func (l *Limiter) Key(key string) *Key { return &Key{l: l, name: key} }

// String is the key.
func (k *Key) String() string { return k.name }

// Allow asks for one token, see [Limiter.Allow].
func (k *Key) Allow(ctx context.Context) (Result, error) { return k.AllowN(ctx, 1) }

// AllowN asks for n tokens, see [Limiter.AllowN].
func (k *Key) AllowN(ctx context.Context, n int) (res Result, err error) {
	// A forgotten entry holds no lease and refuses nothing, so nothing is decided by it.
	if e := k.e.Load(); e != nil && n > 0 {
		if k.l.atHand(&res, e, int64(n), k.l.now()) {
			if !res.Allowed && k.l.cfg.shadow {
				return k.l.shadow(res, nil)
			}
			return res, nil
		}
	}
	res, err = k.l.Take(ctx, Request{Key: k.name, N: n})
	if e, ok := k.l.keys.Get(k.name); ok && k.e.Load() != e {
		e.handled.Store(true)
		k.e.Store(e)
	}
	return res, err
}

// Wait waits for one token, see [Limiter.Wait].
func (k *Key) Wait(ctx context.Context) (Result, error) { return k.l.Wait(ctx, k.name) }

// WaitN waits for n tokens, see [Limiter.WaitN].
func (k *Key) WaitN(ctx context.Context, n int) (Result, error) { return k.l.WaitN(ctx, k.name, n) }

// Peek tells the state of the key, see [Limiter.Peek].
func (k *Key) Peek(ctx context.Context) (Result, error) { return k.l.Peek(ctx, k.name) }

// Reset fills the bucket of the key, see [Limiter.Reset].
func (k *Key) Reset(ctx context.Context) error { return k.l.Reset(ctx, k.name) }
