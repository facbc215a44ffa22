package hybrid

import (
	"context"
	"fmt"
	"time"

	"github.com/resilient-go/limiter/local"
	"github.com/resilient-go/limiter/remote"
)

// Peek tells the state of a key without changing it: not even its TTL at Redis.
// Allowed reports whether one token could be had. In an outage the answer comes
// from what is known here ([SourceDegraded]).
func (l *Limiter) Peek(ctx context.Context, key string) (Result, error) {
	if err := l.check(Request{Key: key}); err != nil {
		return Result{}, err
	}
	level, err := l.level(ctx, key, l.redis.Peek)
	now := l.now()
	e, tracked := l.keys.Get(key)
	if !tracked {
		e = l.newEntry(key, false)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	held := e.lease.Balance(now)
	switch {
	case err == nil:
		res := l.allow(SourceRedis, max(0, level.Tokens/local.Unit)+held)
		if res.Remaining == 0 {
			res.Allowed = false
			res.RetryAfter = max(1, l.timeFor(local.Unit-level.Tokens))
		}
		return res, nil
	case !isOutage(err):
		return Result{}, err
	default:
		return l.peekDegraded(e, held, now), nil
	}
}

// peekDegraded tells what the outage policy would say.
func (l *Limiter) peekDegraded(e *entry, held, now int64) Result {
	switch {
	case l.cfg.policy == FailOpen:
		return l.allow(SourceDegraded, l.units.burst)
	case l.cfg.policy == FailClosed && held == 0:
		return l.refuse(SourceDegraded, 0, refusedFor)
	case l.cfg.policy == FailClosed:
		return l.allow(SourceDegraded, held)
	}
	f := e.fallback
	f.mu.Lock()
	defer f.mu.Unlock()
	tokens, retry := l.quota.burst, time.Duration(0)
	if f.quota != nil {
		tokens, retry = f.quota.Tokens(now), f.quota.RetryAfter(1, now)
	}
	if f.quota == nil || f.fresh {
		tokens = min(tokens, int64(l.startLevel(e, now)))
	}
	if tokens+held == 0 {
		return l.refuse(SourceDegraded, 0, retry)
	}
	return l.allow(SourceDegraded, tokens+held)
}

// Reset gives a key its full burst again, but for the permits that instances
// hold on lease. It needs Redis: in an outage it fails with [ErrUnavailable].
// Other instances may refuse for one lease horizon more, and a local share that
// another instance has used up stays so.
func (l *Limiter) Reset(ctx context.Context, key string) error {
	if err := l.check(Request{Key: key}); err != nil {
		return err
	}
	level, err := l.level(ctx, key, l.redis.Reset)
	if err != nil {
		if isOutage(err) {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		return err
	}
	now := l.now()
	e, ok := l.keys.Get(key)
	if !ok {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.root = rootView{known: true, tokens: level.Tokens, out: level.Out, lastEnd: now + int64(level.LastEnd), at: now, told: now}
	e.hint.Store(max(0, level.Tokens/local.Unit))
	if e.share != nil {
		e.share.Advance(now)
		e.share.Reset()
	}
	if e.flight == nil {
		l.pump(e, now)
	}
	return nil
}

// level makes one call about a key and waits for it, within the remote time-out.
func (l *Limiter) level(ctx context.Context, key string, call func(string, remote.Limit, func(remote.Level, error)) error) (remote.Level, error) {
	if err := ctx.Err(); err != nil {
		return remote.Level{}, err
	}
	if l.closed.Load() {
		return remote.Level{}, ErrClosed
	}
	type answer struct {
		level remote.Level
		err   error
	}
	done := make(chan answer, 1)
	err := call(remote.Key(l.cfg.name, key), l.units.remote(), func(level remote.Level, err error) { done <- answer{level, err} })
	if err != nil {
		return remote.Level{}, err
	}
	t := time.NewTimer(l.cfg.timeout)
	defer t.Stop()
	select {
	case a := <-done:
		return a.level, a.err
	case <-t.C:
		return remote.Level{}, errTimeout
	case <-ctx.Done():
		return remote.Level{}, ctx.Err()
	}
}
