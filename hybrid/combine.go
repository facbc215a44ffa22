package hybrid

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Part is one of several limits that a decision has to keep, see [Combine].
type Part struct {
	// Limiter keeps the limit.
	Limiter *Limiter
	// Request is what is asked of it, for at least one token.
	Request Request
	// Name is what the part is called in the decision. Default: the limiter's name.
	Name string
}

// A Combined is the decision of [Combine].
type Combined struct {
	// Allowed reports whether every part admitted.
	Allowed bool
	// Refused names the part that refused, and Key is the key of its request; both are
	// empty if Allowed.
	Refused, Key string
	// Result is that of the part that refused. If Allowed it is that of the part with
	// the least left of its burst.
	Result Result
	// Results are those of the parts in their order, up to the one that refused. What
	// the earlier ones admitted is undone then. There are none if a refusal was
	// remembered, and nobody was asked.
	Results []Result
}

// Err is nil if the decision is to admit, and else a [*LimitedError] for the part
// that refused.
func (c Combined) Err() error {
	if c.Allowed {
		return nil
	}
	return &LimitedError{Key: c.Key, Part: c.Refused, Result: c.Result}
}

// Combine decides several requests as one, all or nothing: a call may have to keep
// the limit of its user, of its address and of its route. Each part has a limiter and
// a key of its own, which may live on different shards of a cluster and on different
// Redis servers. One that refuses is named, and nothing of the others is spent.
//
// The parts are asked in their order, so put the one first that refuses most often.
// What an earlier one has admitted is held on the lease of its key meanwhile, and is
// put back there when a later one refuses: it is spendable at once, and no tokens
// are minted, because Redis has counted them as out all the time. Where there is no
// lease to hold it, because the key is one beyond [WithMaxKeys], the lease has ended
// or the algorithm knows none, it is lost, which admits less, and is counted in
// Stats.TokensLost. While a refusal of a part is remembered nothing is asked of the
// others at all.
//
// Each part works in an outage as it does alone: those whose Redis is well go on
// with it. The errors are those of [Limiter.Take], and [ErrInvalidN] for a part that
// asks for nothing; then nothing is spent either.
//
// Each limiter counts its part as a decision of its own, in Stats as well.
func Combine(ctx context.Context, parts ...Part) (Combined, error) {
	if err := checkParts(parts); err != nil {
		return Combined{}, err
	}
	for i := range parts {
		if c, refused := parts[i].turnedAway(); refused {
			return c, nil
		}
	}
	all := make([]taken, 0, len(parts))
	done := false
	defer func() { // also if a user's function panics
		for i := range all {
			if done {
				all[i].commit()
			} else {
				all[i].release()
			}
		}
	}()
	c := Combined{Allowed: true, Results: make([]Result, 0, len(parts))}
	for i, p := range parts {
		t, err := p.Limiter.claim(ctx, p.Request)
		if err != nil {
			return Combined{}, err
		}
		c.Results = append(c.Results, t.res)
		if !t.res.Allowed {
			c.refuse(&parts[i], t.res)
			return c, nil
		}
		all = append(all, t)
		if i == 0 || t.res.left() < c.Result.left() {
			c.Result = t.res
		}
	}
	done = true
	return c, nil
}

// CombineWait is [Combine] that comes again when the part that refused says so,
// until every part admits. It ends with the context's error, or at once with
// [ErrWouldExceedDeadline] if the next time comes after its deadline. It keeps no
// place in any queue: those who come at the right moment pass first.
func CombineWait(ctx context.Context, parts ...Part) (Combined, error) {
	for {
		c, err := Combine(ctx, parts...)
		if err != nil || c.Allowed {
			return c, err
		}
		wait := c.Result.RetryAfter
		if end, ok := ctx.Deadline(); ok && time.Until(end) < wait {
			return c, ErrWouldExceedDeadline
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return c, ctx.Err()
		}
	}
}

func checkParts(parts []Part) error {
	if len(parts) == 0 {
		return &ConfigError{Field: "Combine", Reason: "there are no parts"}
	}
	for i, p := range parts {
		if p.Limiter == nil {
			return &ConfigError{Field: "Combine", Reason: fmt.Sprintf("part %d has no limiter", i+1)}
		}
		err := p.Limiter.checkAny(p.Request)
		if err == nil && p.Request.N < 1 {
			err = ErrInvalidN
		}
		if err != nil && !(p.Limiter.cfg.shadow && errors.Is(err, ErrExceedsBurst)) {
			return err
		}
	}
	return nil
}

// turnedAway reports whether a refusal of the part stands.
func (p *Part) turnedAway() (c Combined, refused bool) {
	l := p.Limiter
	e, ok := l.keys.Get(p.Request.Key)
	if !ok || l.cfg.shadow {
		return c, false
	}
	res, refused := l.turnedAway(e, p.Request, l.now())
	if refused {
		c.refuse(p, res)
	}
	return c, refused
}

func (c *Combined) refuse(p *Part, res Result) {
	c.Allowed, c.Result, c.Key, c.Refused = false, res, p.Request.Key, p.Name
	if c.Refused == "" {
		c.Refused = p.Limiter.Name()
	}
}

// left is which part of the burst remains.
func (r Result) left() float64 {
	return float64(r.Remaining) / float64(max(1, r.Limit.Burst()))
}
