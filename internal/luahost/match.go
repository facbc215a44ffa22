package luahost

import (
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// match is string.match. What our scripts read their state with, runs of digits
// with blanks between them, is read here, ten times as fast; the library has the
// rest.
func match(library glua.LGFunction) glua.LGFunction {
	return func(l *glua.LState) int {
		text, isText := l.Get(1).(glua.LString)
		pattern, isPattern := l.Get(2).(glua.LString)
		if !isText || !isPattern || l.GetTop() != 2 {
			return library(l)
		}
		runs, captured, ends, ok := digitRuns(string(pattern))
		if !ok {
			return library(l)
		}
		var space [8]string
		found := space[:0]
		rest := string(text)
		for i := range runs {
			if i > 0 {
				if !strings.HasPrefix(rest, " ") {
					l.Push(glua.LNil)
					return 1
				}
				rest = rest[1:]
			}
			n := 0
			for n < len(rest) && '0' <= rest[n] && rest[n] <= '9' {
				n++
			}
			if n == 0 {
				l.Push(glua.LNil)
				return 1
			}
			found, rest = append(found, rest[:n]), rest[n:]
		}
		if ends && rest != "" {
			l.Push(glua.LNil)
			return 1
		}
		if !captured {
			l.Push(text[:len(text)-len(rest)])
			return 1
		}
		for _, digits := range found {
			l.Push(glua.LString(digits))
		}
		return len(found)
	}
}

// digitRuns reads a pattern of so many runs of digits from the start of a text, all
// captured or none, and perhaps its end. Nothing in such a pattern makes a run give
// digits back.
func digitRuns(pattern string) (runs int, captured, ends, ok bool) {
	rest, ok := strings.CutPrefix(pattern, "^")
	if !ok {
		return 0, false, false, false
	}
	rest, ends = strings.CutSuffix(rest, "$")
	run := "%d+"
	if captured = strings.HasPrefix(rest, "("); captured {
		run = "(%d+)"
	}
	for {
		if rest, ok = strings.CutPrefix(rest, run); !ok {
			return 0, false, false, false
		}
		runs++
		if rest == "" {
			return runs, captured, ends, true
		}
		if rest, ok = strings.CutPrefix(rest, " "); !ok {
			return 0, false, false, false
		}
	}
}
