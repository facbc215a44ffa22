package hybrid

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// A Rule gives the keys that match a pattern a limit of their own.
type Rule struct {
	// Name is what the rule is called in errors and by [Limiter.RuleFor]. It is
	// unique within its set and has no spaces.
	Name string `json:"name"`
	// Key is the pattern. A * stands for any run of characters, also none, and all
	// else for itself; \* is a star and \\ a backslash. The whole key must match.
	Key string `json:"key"`
	// Limit applies to each key that matches, on its own: [Unlimited] and [Blocked]
	// are limits too. Its text form is that of [ParseLimit].
	Limit Limit `json:"limit"`
}

// A RuleSet names limits by key patterns: limits as configuration. The first rule
// whose pattern matches a key gives its limit, so put the special ones first; a
// key that none matches has the limit of the limiter. See [WithRules] and
// [Limiter.SetRules].
//
// A set is a plain value that reads and writes JSON, and any other format that maps
// fields to structs by name and knows [encoding.TextUnmarshaler]. Its text form has
// a line per rule: see [ParseRules].
type RuleSet struct {
	// Version is the version of the limits, see [WithLimitVersion]: with a higher
	// one than other instances have, raised limits apply at once and not only when
	// the last instance has them. 0: the version that the limiter's own limit has
	// when the rules are set.
	Version int64 `json:"version,omitempty"`
	// Rules in order: the first one that matches applies.
	Rules []Rule `json:"rules"`
}

// A RuleError says which rule of a [RuleSet] is wrong, and what about it. Where
// several are wrong, the error is all of them, joined.
type RuleError struct {
	Number int    // of the rule, from 1; 0 for what concerns the set
	Rule   string // its name
	Field  string // "name", "key", "limit" or "version", empty for the whole rule
	Reason string
}

func (e *RuleError) Error() string {
	var b strings.Builder
	b.WriteString("hybrid: rules: ")
	if e.Number > 0 {
		fmt.Fprintf(&b, "rule %d", e.Number)
		if e.Rule != "" {
			fmt.Fprintf(&b, " (%s)", e.Rule)
		}
		if e.Field != "" {
			b.WriteString(", ")
		}
	}
	b.WriteString(e.Field)
	if e.Number > 0 || e.Field != "" {
		b.WriteString(": ")
	}
	b.WriteString(e.Reason)
	return b.String()
}

// Validate reports everything that is wrong with the set: [*RuleError] values,
// joined. A rule that can never apply, because an earlier one matches all of its
// keys, is wrong too.
func (s RuleSet) Validate() error {
	_, err := s.compile()
	return err
}

// compile validates the set and makes it fast to match.
func (s RuleSet) compile() (*patterns, error) {
	var errs []error
	bad := func(i int, field, format string, args ...any) {
		errs = append(errs, &RuleError{Number: i + 1, Rule: s.Rules[i].Name, Field: field, Reason: fmt.Sprintf(format, args...)})
	}
	if s.Version < 0 || s.Version >= exact {
		errs = append(errs, &RuleError{Field: "version", Reason: fmt.Sprintf("must be from 0 to 2^53 - 1, not %d", s.Version)})
	}
	ps := &patterns{literal: map[string]int{}}
	names := map[string]int{}
	for i, r := range s.Rules {
		switch first, taken := names[r.Name]; {
		case r.Name == "":
			bad(i, "name", "is missing")
		case strings.ContainsFunc(r.Name, unfit) || r.Name[0] == '#':
			bad(i, "name", "has a space or an unprintable character, or begins with #")
		case taken:
			bad(i, "name", "is that of rule %d", first+1)
		default:
			names[r.Name] = i
		}
		if p, err := parsePattern(r.Key); err != nil {
			bad(i, "key", "%v", err)
			ps.add(pattern{}, i) // keeps the numbers
		} else {
			if by, ok := ps.covered(p); ok {
				bad(i, "key", "rule %d (%s) matches all of these keys first", by+1, s.Rules[by].Name)
			}
			ps.add(p, i)
		}
		if r.Limit != Unlimited && r.Limit != Blocked {
			if _, err := r.Limit.units(); err != nil {
				bad(i, "limit", "%s", reason(err))
			}
		}
	}
	return ps, errors.Join(errs...)
}

// unfit says which characters a name has none of.
func unfit(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }

// reason is what a ConfigError says, without the field.
func reason(err error) string {
	var c *ConfigError
	if errors.As(err, &c) {
		return c.Reason
	}
	return err.Error()
}

// clone gives a set that shares nothing with this one.
func (s RuleSet) clone() RuleSet {
	s.Rules = slices.Clone(s.Rules)
	return s
}
