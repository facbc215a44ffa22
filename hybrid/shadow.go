package hybrid

import "errors"

// WithShadow has the limiter decide, count and report as always, but admit
// everything: to see what a limit would do before it does it. A request that would
// have been refused comes back as admitted with [Result.Shadow] set, and with the
// Source and RetryAfter of the refusal; Stats count it as refused, and as Shadowed.
// Wait does not wait. Default: off.
func WithShadow() Option { return func(c *config) { c.shadow = true } }

// shadow turns a refusal into an admission, if the limiter is a shadow.
func (l *Limiter) shadow(res Result, err error) (Result, error) {
	if !l.cfg.shadow || err == nil && res.Allowed {
		return res, err
	}
	switch {
	case err == nil:
	case errors.Is(err, ErrExceedsBurst):
		res = Result{Limit: l.Limit()}
	default:
		return res, err
	}
	l.counts.shadowed.Add(1)
	res.Allowed, res.Shadow = true, true
	return res, nil
}
