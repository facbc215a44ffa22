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
	e := l.view(key)
	asked := e.asks()
	if asked.fixed() {
		return asked.rule(), nil
	}
	level, err := l.level(ctx, e.key, asked, root.Peek)
	now := l.now()
	if known, ok := l.keys.Get(key); ok {
		e = known
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	earned, meters := e.lease.Meter(1, now)
	held := e.lease.Balance(now)
	switch {
	case err == nil:
		t, _ := l.termsOf(asked, level.Limit)
		root := newRootView(level, now, now)
		remaining := held + max(0, level.Tokens/local.Unit)
		var retry time.Duration // for one token
		switch {
		case remaining > 0:
		case meters:
			retry = t.metered(earned)
		default:
			retry = t.retryAfter(&root, 1, now)
			if level.Timed {
				retry = max(1, level.Fits)
			}
		}
		if e.share != nil {
			e.hold(now, 0)
			if most := held + e.share.Level(); most < remaining {
				remaining = most
			}
			if remaining == 0 {
				retry = max(retry, e.share.RetryAfter(1, 0))
			}
		}
		res := t.allow(SourceRedis, remaining)
		if remaining == 0 {
			res = t.refuse(SourceRedis, 0, retry)
		}
		if t.timed || t.tiers != nil {
			res.ResetAfter = max(level.Reset, res.RetryAfter)
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
		return e.force().allow(SourceDegraded, e.force().burst)
	case l.cfg.policy == FailClosed && held == 0:
		return e.force().refuse(SourceDegraded, 0, refusedFor)
	case l.cfg.policy == FailClosed:
		return e.force().allow(SourceDegraded, held)
	}
	f := e.fallback
	f.mu.Lock()
	defer f.mu.Unlock()
	shape := l.shape(e, now)
	if shape.burst == 0 && held == 0 {
		return e.force().ofQuota(&shape, false, 0, refusedFor)
	}
	tokens, retry := shape.burst, time.Duration(1e9/shape.perSecond)
	if f.quota != nil {
		tokens, retry = min(tokens, f.quota.Tokens(now)), f.quota.RetryAfter(1, now)
	}
	if f.quota == nil || f.fresh {
		tokens = min(tokens, int64(l.startLevel(e, shape, now)))
	}
	if tokens+held == 0 {
		return e.force().ofQuota(&shape, false, 0, retry)
	}
	return e.force().ofQuota(&shape, true, tokens+held, 0)
}

// Reset gives a key its full burst again, but for what other instances hold on
// lease: permits, and the room that a lease with a rate has to earn some, which is
// all of it while they are busy with the key. It needs Redis: in an outage it
// fails with [ErrUnavailable]. Other instances may refuse for one lease horizon
// more, and a local share that another instance has used up stays so.
func (l *Limiter) Reset(ctx context.Context, key string) error {
	if err := l.check(Request{Key: key}); err != nil {
		return err
	}
	view := l.view(key)
	asked := view.asks()
	if asked.fixed() {
		return nil
	}
	l.yield(key)
	level, err := l.level(ctx, view.key, asked, root.Reset)
	switch {
	case err == nil:
	case remote.ClassOf(err) == remote.Refused:
		return fmt.Errorf("%w: the circuit breaker is open", ErrUnavailable)
	case isOutage(err) && !remote.ClassOf(err).KeyOnly():
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	default:
		return err
	}
	now := l.now()
	e, ok := l.keys.Get(key)
	if !ok {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	l.govern(e, asked.remote(), level.Limit, now)
	e.withdraw()
	e.root = newRootView(level, now, now)
	e.resetAt.Store(e.root.reset)
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

// view is the entry of a key, or what one would be like.
func (l *Limiter) view(key string) *entry {
	e, ok := l.keys.Get(key)
	if !ok {
		e = l.newEntry(key, false)
	}
	l.consult(e)
	return e
}

// yield gives the own lease of a key back and waits for that, within the remote
// time-out.
func (l *Limiter) yield(key string) {
	e, ok := l.keys.Get(key)
	if !ok {
		return
	}
	e.mu.Lock()
	now := l.now()
	if e.flight != nil || e.lease.Idle() || e.lease.Ended(now) || !l.up(e) || l.closed.Load() {
		e.mu.Unlock()
		return
	}
	f := &flight{msg: l.returning(e, now), sent: now, landed: make(chan struct{})}
	l.send(e, f)
	e.mu.Unlock()
	t := time.NewTimer(l.cfg.timeout)
	defer t.Stop()
	select {
	case <-f.landed:
	case <-t.C:
	}
}

// level makes one call about a key and waits for it, within the remote time-out.
func (l *Limiter) level(ctx context.Context, key string, asked *terms, call func(root, string, remote.Limit, func(remote.Level, error)) error) (remote.Level, error) {
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
	a := l.laneOf(key)
	err := call(a.root, key, asked.remote(), func(level remote.Level, err error) {
		if err != nil {
			a.failed(key, err)
		}
		done <- answer{level, err}
	})
	if err != nil {
		return remote.Level{}, l.orClosed(err)
	}
	t := time.NewTimer(l.cfg.timeout)
	defer t.Stop()
	select {
	case a := <-done:
		return a.level, l.orClosed(a.err)
	case <-t.C:
		return remote.Level{}, errTimeout
	case <-ctx.Done():
		return remote.Level{}, ctx.Err()
	case <-l.closing:
		return remote.Level{}, ErrClosed
	}
}

// orClosed is what a call that failed because of Close ends with.
func (l *Limiter) orClosed(err error) error {
	if remote.ClassOf(err) == remote.Closed && l.closed.Load() {
		return ErrClosed
	}
	return err
}
