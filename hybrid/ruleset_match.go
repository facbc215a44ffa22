package hybrid

import (
	"errors"
	"math"
	"strings"
)

// A pattern is the pieces of text between its stars: one piece if there is none.
type pattern []string

var (
	errNoPattern = errors.New("is missing; \"*\" matches every key")
	errEscape    = errors.New("a backslash stands before * or another backslash only")
)

func parsePattern(text string) (pattern, error) {
	if text == "" {
		return nil, errNoPattern
	}
	var p pattern
	var piece strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '*':
			p = append(p, piece.String())
			piece.Reset()
		case '\\':
			i++
			if i == len(text) || text[i] != '*' && text[i] != '\\' {
				return nil, errEscape
			}
			piece.WriteByte(text[i])
		default:
			piece.WriteByte(c)
		}
	}
	return append(p, piece.String()), nil
}

// match reports whether the whole text is of the pattern. Each piece is looked for
// as early as it can be, which is right because what lies between is free; so it
// takes no more than the text is long for each piece.
func (p pattern) match(text string) bool {
	switch len(p) {
	case 0:
		return false
	case 1:
		return text == p[0]
	}
	text, ok := strings.CutPrefix(text, p[0])
	if !ok {
		return false
	}
	last := len(p) - 1
	for _, piece := range p[1:last] {
		if _, text, ok = strings.Cut(text, piece); !ok {
			return false
		}
	}
	return strings.HasSuffix(text, p[last])
}

// covers reports whether every text of q is one of p. It is enough to look at one,
// in which a byte that p does not contain stands for the stars: where p matches
// that, its own stars have taken it, and they take anything.
func (p pattern) covers(q pattern) bool {
	mine := strings.Join(p, "")
	for b := 255; b >= 0; b-- {
		if free := string([]byte{byte(b)}); !strings.Contains(mine, free) {
			return p.match(strings.Join(q, free))
		}
	}
	return false // a pattern of all bytes is let be
}

// patterns are those of a set, in order. Those without a star are found by their
// text, so that many of them cost nothing.
type patterns struct {
	literal map[string]int // number of the first such rule
	globs   []glob
}

type glob struct {
	pattern
	rule int
}

func (ps *patterns) add(p pattern, rule int) {
	if len(p) != 1 {
		ps.globs = append(ps.globs, glob{p, rule})
	} else if _, ok := ps.literal[p[0]]; !ok {
		ps.literal[p[0]] = rule
	}
}

// find gives the number of the first rule that matches.
func (ps *patterns) find(key string) (rule int, ok bool) {
	rule, ok = ps.literal[key]
	if !ok {
		rule = math.MaxInt
	}
	for _, g := range ps.globs {
		if g.rule > rule {
			break
		}
		if g.match(key) {
			return g.rule, true
		}
	}
	return rule, ok
}

// covered gives the first rule that matches all that a pattern matches.
func (ps *patterns) covered(p pattern) (rule int, ok bool) {
	if len(p) == 1 {
		return ps.find(p[0])
	}
	for _, g := range ps.globs {
		if g.covers(p) {
			return g.rule, true
		}
	}
	return 0, false
}
