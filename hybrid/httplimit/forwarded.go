package httplimit

import (
	"iter"
	"net/http"
	"strings"
)

// fromRight yields the addresses that a header tells, the nearest first. A value
// that tells none is yielded as an empty text. What proxies appended can be read
// whatever stands left of it: each line is read by itself, from its end.
func fromRight(h http.Header, header ClientHeader) iter.Seq[string] {
	return func(yield func(string) bool) {
		lines := h[clientHeaderNames[header]]
		for i := len(lines) - 1; i >= 0; i-- {
			if header == XRealIP {
				yield(lines[i]) // the last one was set by the nearest
				return
			}
			for rest, more := lines[i], true; more; {
				var element string
				rest, element, more = cutLast(rest, header == Forwarded)
				element = strings.Trim(element, " \t")
				if element == "" { // lists may have empty elements
					continue
				}
				if header == Forwarded {
					element = forParam(element)
				}
				if !yield(element) {
					return
				}
			}
		}
	}
}

// cutLast cuts off what stands behind the last comma. Commas in quotes do not
// count if quotes do; they are found from the right, so that an unbalanced quote of
// the client does not reach what proxies appended.
func cutLast(s string, quotes bool) (before, last string, found bool) {
	quoted := false
	for i := len(s) - 1; i >= 0; i-- {
		switch {
		case s[i] == ',' && !quoted:
			return s[:i], s[i+1:], true
		case s[i] == '"' && quotes && !(quoted && escaped(s, i)):
			quoted = !quoted
		}
	}
	return "", s, false
}

// escaped reports whether an odd number of backslashes stands before s[i].
func escaped(s string, i int) bool {
	n := 0
	for i--; i >= 0 && s[i] == '\\'; i-- {
		n++
	}
	return n%2 == 1
}

// forParam is the value of "for" in an element of Forwarded (RFC 7239), empty if it
// has none or more than one, or if the element is malformed.
func forParam(s string) string {
	value := ""
	for s != "" {
		name, rest, ok := strings.Cut(s, "=")
		if !ok || !isToken(name) {
			return ""
		}
		var v string
		if v, s, ok = paramValue(rest); !ok {
			return ""
		}
		if strings.EqualFold(name, "for") {
			if value != "" {
				return ""
			}
			value = v
		}
		if s = strings.TrimLeft(s, " \t"); s == "" {
			break
		}
		if s, ok = strings.CutPrefix(s, ";"); !ok {
			return ""
		}
		s = strings.TrimLeft(s, " \t")
	}
	return value
}

// paramValue reads a token or a quoted string. Addresses are accepted without the
// quotes that they need, as some proxies write them.
func paramValue(s string) (value, rest string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		end := strings.IndexAny(s, "; \t\"")
		if end < 0 {
			end = len(s)
		}
		return s[:end], s[end:], end > 0
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), s[i+1:], true
		case '\\':
			if i++; i == len(s) {
				return "", "", false
			}
		}
		b.WriteByte(s[i])
	}
	return "", "", false
}
