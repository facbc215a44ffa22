package hybrid

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// ParseRules reads a set of rules: JSON if the text begins with a brace, and else
// the text form, a rule per line as its name, the pattern of its keys and its limit:
//
//	# the first one that matches applies
//	version 3
//	staff    user:staff:*   unlimited
//	search   *:search       10/s burst 20
//	banned   "ip:10.0.0 7"  blocked
//
// A pattern with spaces stands in quotes, as in Go. The version is a line of its own
// and may be missing, empty lines and those that begin with # say nothing. The error
// tells all that is wrong, as [*RuleError] values; a set that is returned without
// one is valid.
func ParseRules(text string) (RuleSet, error) {
	var s RuleSet
	var err error
	if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, "{") {
		err = json.Unmarshal([]byte(trimmed), &s)
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			err = &RuleError{Reason: fmt.Sprintf("no JSON: %v at byte %d", err, syntax.Offset)}
		}
	} else {
		s, err = parseLines(text)
	}
	if err == nil {
		err = s.Validate()
	}
	if err != nil {
		return RuleSet{}, err
	}
	return s, nil
}

func parseLines(text string) (s RuleSet, err error) {
	var errs []error
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		name, rest := word(line)
		if name == "" || name[0] == '#' {
			continue
		}
		if key, more := word(rest); name == "version" && more == "" && key != "" {
			v, err := strconv.ParseInt(key, 10, 64)
			if err != nil || s.Version != 0 {
				errs = append(errs, &RuleError{Field: "version", Reason: fmt.Sprintf("%q is no integer, or the second one", key)})
			}
			s.Version = v
			continue
		}
		r := Rule{Name: name}
		bad := func(field string, err error) {
			errs = append(errs, &RuleError{Number: len(s.Rules) + 1, Rule: name, Field: field, Reason: reason(err)})
		}
		var limit string
		if r.Key, limit, err = keyAndLimit(rest); err != nil {
			bad("key", err)
		} else if r.Limit, err = ParseLimit(limit); err != nil {
			bad("limit", err)
		}
		s.Rules = append(s.Rules, r)
	}
	return s, errors.Join(errs...)
}

// word cuts the first word off a line.
func word(line string) (first, rest string) {
	if i := strings.IndexAny(line, " \t"); i >= 0 {
		return line[:i], strings.TrimSpace(line[i:])
	}
	return line, ""
}

func keyAndLimit(text string) (key, limit string, err error) {
	if !strings.HasPrefix(text, `"`) {
		key, limit = word(text)
		return key, limit, nil
	}
	quoted, err := strconv.QuotedPrefix(text)
	if err == nil {
		key, err = strconv.Unquote(quoted)
	}
	if err != nil {
		return "", "", errors.New("is not well quoted")
	}
	return key, strings.TrimSpace(text[len(quoted):]), nil
}

// String is the text form, which [ParseRules] reads.
func (s RuleSet) String() string {
	var b strings.Builder
	if s.Version != 0 {
		fmt.Fprintf(&b, "version %d\n", s.Version)
	}
	for _, r := range s.Rules {
		key := r.Key
		if strings.ContainsFunc(key, unfit) || strings.HasPrefix(key, `"`) || key == "" {
			key = strconv.Quote(key)
		}
		fmt.Fprintf(&b, "%s %s %v\n", r.Name, key, r.Limit)
	}
	return b.String()
}

// UnmarshalJSON implements [json.Unmarshaler]. It knows every field, so that a
// misspelt one is an error, and its errors say of which rule. Whether the set is
// valid as a whole is for [RuleSet.Validate] and [Limiter.SetRules] to say.
func (s *RuleSet) UnmarshalJSON(data []byte) error {
	var raw struct {
		Version int64
		Rules   []json.RawMessage
	}
	if err := strict(data, &raw); err != nil {
		field, why := fault(err)
		return &RuleError{Field: field, Reason: why}
	}
	set := RuleSet{Version: raw.Version, Rules: make([]Rule, len(raw.Rules))}
	var errs []error
	for i, text := range raw.Rules {
		var r struct{ Name, Key, Limit string }
		if err := strict(text, &r); err != nil {
			field, why := fault(err)
			errs = append(errs, &RuleError{Number: i + 1, Rule: r.Name, Field: field, Reason: why})
			continue
		}
		limit, err := ParseLimit(r.Limit)
		if err != nil {
			errs = append(errs, &RuleError{Number: i + 1, Rule: r.Name, Field: "limit", Reason: reason(err)})
		}
		set.Rules[i] = Rule{Name: r.Name, Key: r.Key, Limit: limit}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	*s = set
	return nil
}

// strict decodes JSON that has no other fields than v.
func strict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more than one value")
	}
	return nil
}

// fault says what a decoder's error is about.
func fault(err error) (field, why string) {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return strings.ToLower(wrong.Field), "is a " + wrong.Value
	}
	return "", strings.TrimPrefix(err.Error(), "json: ")
}
