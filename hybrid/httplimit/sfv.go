package httplimit

import (
	"errors"
	"strconv"
	"strings"
)

// The part of structured fields (RFC 9651) that the RateLimit fields need: lists
// of items with parameters. Inner lists, dates and display strings are refused.

// sfMax is the largest integer of a structured field.
const sfMax = 999_999_999_999_999

var errField = errors.New("httplimit: malformed structured field")

// A member is one item of a list.
type member struct {
	text   string // as it was written
	name   string // the bare item's text, unquoted
	named  bool   // the bare item is a string or a token
	params map[string]string
}

// number returns a parameter that is a non-negative integer.
func (m member) number(name string) (int64, bool) {
	n, err := strconv.ParseInt(m.params[name], 10, 64)
	return n, err == nil && n >= 0
}

func (m member) samePolicy(o member) bool {
	return m.named && o.named && m.name == o.name && m.params["pk"] == o.params["pk"]
}

// stricter reports whether m tells of less remaining than o, or of the same for
// longer. Without r, as in RateLimit-Policy, none is stricter.
func (m member) stricter(o member) bool {
	r, ok := m.number("r")
	other, otherOK := o.number("r")
	if !ok || !otherOK {
		return false
	}
	t, _ := m.number("t")
	otherT, _ := o.number("t")
	return r < other || r == other && t > otherT
}

// printable reports whether a text fits a string of a structured field.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// quote writes a string. What does not fit one becomes "?".
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < 0x20 || r > 0x7e:
			b.WriteByte('?')
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// parseList reads a list that may be split over several lines.
func parseList(lines []string) ([]member, error) {
	var text strings.Builder
	for _, line := range lines {
		if line = strings.Trim(line, " \t"); line == "" {
			continue
		}
		if text.Len() > 0 {
			text.WriteByte(',')
		}
		text.WriteString(line)
	}
	if text.Len() == 0 {
		return nil, nil
	}
	p := &parser{s: text.String()}
	var list []member
	for {
		m, err := p.member()
		if err != nil {
			return nil, err
		}
		list = append(list, m)
		p.skip(" \t")
		if p.done() {
			return list, nil
		}
		if !p.eat(',') {
			return nil, errField
		}
		p.skip(" \t")
		if p.done() { // a trailing comma
			return nil, errField
		}
	}
}

type parser struct {
	s string
	i int
}

func (p *parser) done() bool { return p.i == len(p.s) }

func (p *parser) peek() byte {
	if p.done() {
		return 0
	}
	return p.s[p.i]
}

func (p *parser) eat(c byte) bool {
	if p.peek() != c {
		return false
	}
	p.i++
	return true
}

func (p *parser) skip(set string) {
	for !p.done() && strings.IndexByte(set, p.peek()) >= 0 {
		p.i++
	}
}

// while takes what satisfies f.
func (p *parser) while(f func(c byte) bool) string {
	from := p.i
	for !p.done() && f(p.peek()) {
		p.i++
	}
	return p.s[from:p.i]
}

func (p *parser) member() (member, error) {
	from := p.i
	name, named, err := p.bare()
	if err != nil {
		return member{}, err
	}
	m := member{name: name, named: named, params: map[string]string{}}
	for p.eat(';') {
		p.skip(" ")
		if c := p.peek(); !isLower(c) && c != '*' {
			return member{}, errField
		}
		key := p.while(func(c byte) bool { return isLower(c) || isDigit(c) || strings.IndexByte("_-.*", c) >= 0 })
		value := "?1"
		if p.eat('=') {
			if value, _, err = p.bare(); err != nil {
				return member{}, err
			}
		}
		m.params[key] = value
	}
	m.text = p.s[from:p.i]
	return m, nil
}

// bare reads a bare item. It returns strings without quotes and the rest as
// written.
func (p *parser) bare() (text string, named bool, err error) {
	from := p.i
	switch c := p.peek(); {
	case c == '"':
		text, err = p.str()
		return text, true, err
	case isLower(c) || isUpper(c) || c == '*':
		return p.while(func(c byte) bool {
			return isLower(c) || isUpper(c) || isDigit(c) || strings.IndexByte("!#$%&'*+-.^_`|~:/", c) >= 0
		}), true, nil
	case c == '-' || isDigit(c):
		p.eat('-')
		whole := p.while(isDigit)
		if whole == "" || len(whole) > 15 {
			return "", false, errField
		}
		if p.eat('.') {
			if part := p.while(isDigit); part == "" || len(part) > 3 || len(whole) > 12 {
				return "", false, errField
			}
		}
	case c == ':':
		p.i++
		p.while(func(c byte) bool { return isLower(c) || isUpper(c) || isDigit(c) || c == '+' || c == '/' || c == '=' })
		if !p.eat(':') {
			return "", false, errField
		}
	case c == '?':
		p.i++
		if !p.eat('0') && !p.eat('1') {
			return "", false, errField
		}
	default:
		return "", false, errField
	}
	return p.s[from:p.i], false, nil
}

func (p *parser) str() (string, error) {
	p.i++
	var b strings.Builder
	for !p.done() {
		c := p.s[p.i]
		p.i++
		switch {
		case c == '"':
			return b.String(), nil
		case c == '\\':
			if p.peek() != '"' && p.peek() != '\\' {
				return "", errField
			}
			b.WriteByte(p.s[p.i])
			p.i++
		case c < 0x20 || c > 0x7e:
			return "", errField
		default:
			b.WriteByte(c)
		}
	}
	return "", errField
}

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
