package luahost

import (
	"math"
	"strconv"
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// toNumber is tonumber without a base. The library's refuses what lies beyond 2^63.
func toNumber(l *glua.LState) int {
	if l.GetTop() > 1 {
		l.RaiseError("luahost: tonumber takes no base")
	}
	switch v := l.CheckAny(1).(type) {
	case glua.LNumber:
		l.Push(v)
		return 1
	case glua.LString:
		if x, ok := number(string(v)); ok {
			l.Push(glua.LNumber(x))
			return 1
		}
	}
	l.Push(glua.LNil)
	return 1
}

// number reads a string as C does, with white space around it.
func number(text string) (float64, bool) {
	text = strings.Trim(text, " \t\n\v\f\r")
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n != 0 {
		return float64(n), true
	}
	if strings.Contains(text, "_") {
		return 0, false // of Go alone
	}
	if hex := strings.ToLower(text); strings.HasPrefix(hex, "0x") && !strings.Contains(hex, "p") {
		text += "p0"
	}
	x, err := strconv.ParseFloat(text, 64)
	return x, err == nil || math.IsInf(x, 0)
}

// numberText is what redis.call makes of a number.
func numberText(x float64) string {
	if x == math.Trunc(x) && math.Abs(x) < 1<<53 {
		return strconv.FormatInt(int64(x), 10)
	}
	return strconv.FormatFloat(x, 'g', 17, 64)
}

// format is string.format with %.0f, the only verb of our scripts. Halves go to the
// even neighbour and zero may be negative, as in C.
func format(l *glua.LState) int {
	text := l.CheckString(1)
	var space [128]byte
	out := space[:0]
	for argument := 2; ; argument++ {
		before, verb, found := strings.Cut(text, "%")
		out = append(out, before...)
		if !found {
			break
		}
		if !strings.HasPrefix(verb, ".0f") {
			l.RaiseError("luahost: string.format knows %%.0f alone, not %%%s", verb)
		}
		text = verb[len(".0f"):]
		out = appendNumber(out, numberArgument(l, argument))
	}
	l.Push(glua.LString(out))
	return 1
}

// numberArgument is an argument of format.
func numberArgument(l *glua.LState, i int) float64 {
	why := "no value"
	if i <= l.GetTop() {
		v := l.Get(i)
		switch v := v.(type) {
		case glua.LNumber:
			return float64(v)
		case glua.LString:
			if x, ok := number(string(v)); ok {
				return x
			}
		}
		why = "number expected, got " + v.Type().String()
	}
	l.RaiseError("bad argument #%d to 'format' (%s)", i, why)
	return 0
}

func appendNumber(out []byte, x float64) []byte {
	switch {
	case x == math.Trunc(x) && x != 0 && math.Abs(x) < 1<<53:
		return strconv.AppendInt(out, int64(x), 10)
	case math.IsInf(x, 1):
		return append(out, "inf"...)
	case math.IsInf(x, -1):
		return append(out, "-inf"...)
	case math.IsNaN(x):
		return append(out, "nan"...) // C may put a sign in front
	}
	return strconv.AppendFloat(out, x, 'f', 0, 64)
}
