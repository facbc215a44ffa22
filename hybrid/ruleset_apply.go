package hybrid

// WithRules gives the keys that match a pattern a limit of their own, see
// [RuleSet]; the limit that New is given applies to the others. [Limiter.SetRules]
// changes the rules later. It contradicts [WithLimitByKey]: a function can do what
// rules cannot. Default: no rules.
func WithRules(set RuleSet) Option {
	set = set.clone()
	return func(c *config) { c.rules = &set }
}

// A ruleBook is a set in force. It never changes.
type ruleBook struct {
	set      RuleSet
	patterns *patterns
	terms    []*terms // of each rule
}

// newRuleBook validates a set in the light of the options.
func newRuleBook(c *config, set RuleSet, version int64) (*ruleBook, error) {
	ps, err := set.compile()
	if err != nil {
		return nil, err
	}
	if set.Version != 0 {
		version = set.Version
	}
	b := &ruleBook{set: set.clone(), patterns: ps, terms: make([]*terms, len(set.Rules))}
	for i, r := range set.Rules {
		if b.terms[i], err = newTerms(c, r.Limit, version); err != nil {
			return nil, &RuleError{Number: i + 1, Rule: r.Name, Field: "limit", Reason: reason(err)}
		}
	}
	return b, nil
}

// SetRules puts another set of rules in the place of the one in force: at once, for
// all keys, as [Limiter.SetLimit] does for the others, and all of the set or, with
// an error, nothing of it. A key whose limit stays the same notices nothing, and one
// that no rule matches any more has the limiter's own limit again.
//
// Tell all instances, see SetLimit; [RuleSet.Version] has raised limits apply at
// once. The error is that of [RuleSet.Validate], [ErrClosed], or a [*ConfigError] if
// the limiter was made without [WithRules].
func (l *Limiter) SetRules(set RuleSet) error {
	l.limitMu.Lock()
	defer l.limitMu.Unlock()
	if l.closed.Load() {
		return ErrClosed
	}
	if l.rules.Load() == nil {
		return &ConfigError{Field: "SetRules", Reason: "the limiter was made without WithRules; an empty RuleSet will do"}
	}
	b, err := newRuleBook(&l.cfg, set, l.terms.Load().version)
	if err != nil {
		return err
	}
	l.rules.Store(b)
	l.keys.All(func(e *entry) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.dead {
			return
		}
		var t *terms
		if t, e.named = l.termsFor(e.user); !e.mine.same(t) {
			l.retune(e, t, l.now())
		}
	})
	return nil
}

// Rules is the set of rules in force, the caller's to change.
func (l *Limiter) Rules() RuleSet {
	if b := l.rules.Load(); b != nil {
		return b.set.clone()
	}
	return RuleSet{}
}

// RuleFor gives the rule that applies to a key, and false if none does and the key
// has the limiter's own limit.
func (l *Limiter) RuleFor(key string) (Rule, bool) {
	if b := l.rules.Load(); b != nil {
		if i, ok := b.patterns.find(key); ok {
			return b.set.Rules[i], true
		}
	}
	return Rule{}, false
}

// termsFor gives the terms of a key by the rules, or the limiter's own, and whether
// a rule names them.
func (l *Limiter) termsFor(key string) (t *terms, named bool) {
	if b := l.rules.Load(); b != nil {
		if i, ok := b.patterns.find(key); ok {
			return b.terms[i], true
		}
	}
	return l.terms.Load(), false
}
