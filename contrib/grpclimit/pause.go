package grpclimit

import (
	"errors"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// pauses are the keys that the remote side wants no calls of for now.
type pauses struct {
	most int

	mu    sync.Mutex // guards until
	until map[string]time.Time
}

// left is how much of a key's pause is left.
func (p *pauses) left(key string, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	end, ok := p.until[key]
	if !ok {
		return 0
	}
	if d := end.Sub(now); d > 0 {
		return d
	}
	delete(p.until, key)
	return 0
}

// extend makes a pause, or one longer. Answers overtake each other, so none makes
// it shorter.
func (p *pauses) extend(key string, now, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until == nil {
		p.until = map[string]time.Time{}
	}
	was, ok := p.until[key]
	if ok && !until.After(was) {
		return
	}
	if !ok && len(p.until) >= p.most {
		p.makeRoom(now)
	}
	p.until[key] = until
}

// makeRoom forgets the pauses that are over, or the one that ends first. mu is
// held.
func (p *pauses) makeRoom(now time.Time) {
	first, end := "", time.Time{}
	for key, until := range p.until {
		if !until.After(now) {
			delete(p.until, key)
			continue
		}
		if end.IsZero() || until.Before(end) {
			first, end = key, until
		}
	}
	if len(p.until) >= p.most {
		delete(p.until, first)
	}
}

// pauseAsked is the pause that an error of a call asks for: by a RetryInfo, if the
// code says that the call was refused.
func pauseAsked(err error) time.Duration {
	if own := (*LimitedError)(nil); errors.As(err, &own) {
		return 0 // of another Client below this one: the remote side was not asked
	}
	st, ok := status.FromError(err)
	if !ok || st.Code() != codes.ResourceExhausted && st.Code() != codes.Unavailable {
		return 0
	}
	var longest time.Duration
	for _, d := range st.Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok && info.GetRetryDelay().IsValid() {
			longest = max(longest, info.GetRetryDelay().AsDuration()) // it saturates
		}
	}
	return longest
}
