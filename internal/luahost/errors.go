package luahost

import (
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// An Error is what Redis would answer in place of a reply: a code in capitals, ERR
// in most cases, and a text. For go-redis it is an error of the server.
type Error string

// Error is the text with its code.
func (e Error) Error() string { return string(e) }

// RedisError marks it for go-redis.
func (e Error) RedisError() {}

const (
	errNotInteger = Error("ERR value is not an integer or out of range")
	errSyntax     = Error("ERR syntax error")
)

func arity(args []string) error {
	return Error("ERR wrong number of arguments for '" + strings.ToLower(args[0]) + "' command")
}

// raise ends the script with an error of a command. It is a table, by which it
// differs from an error of the script itself.
func raise(l *glua.LState, text string) int {
	l.Error(errorTable(l, text), 1)
	return 0
}

func errorTable(l *glua.LState, text string) *glua.LTable {
	t := l.CreateTable(0, 1)
	t.RawSetString("err", glua.LString(text))
	return t
}

// failure is the answer to a script that failed.
func failure(err error) error {
	api, ok := err.(*glua.ApiError)
	if !ok {
		return Error("ERR " + err.Error())
	}
	if t, ok := api.Object.(*glua.LTable); ok {
		if text, ok := t.RawGetString("err").(glua.LString); ok {
			return Error(text)
		}
	}
	return Error("ERR " + api.Object.String())
}
