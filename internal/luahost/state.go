package luahost

import (
	"math"
	"slices"
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// basics are the functions that a script may use without the name of a library.
// Redis has more: what loads code, what goes on after an error, and tostring, which
// drops digits there and none here. The operator .. on numbers does so too; scripts
// write numbers by string.format.
var basics = []string{"assert", "error", "ipairs", "next", "pairs", "select", "type", "unpack"}

// newState returns an interpreter with what Redis offers a script. It has no
// random numbers: a course must be the same again.
func newState(call glua.LGFunction) *glua.LState {
	l := glua.NewState(glua.Options{
		SkipOpenLibs: true,
		// Small at first, since a simulation makes many hosts; a script that saves
		// many fields makes it grow.
		RegistrySize: 1024, RegistryMaxSize: 1 << 18, RegistryGrowStep: 1024,
		CallStackSize: 64,
	})
	for _, open := range []glua.LGFunction{glua.OpenBase, glua.OpenTable, glua.OpenString, glua.OpenMath} {
		l.Push(l.NewFunction(open))
		l.Call(0, 0)
	}
	globals := l.G.Global
	kept := append(slices.Clone(basics), glua.TabLibName, glua.StringLibName, glua.MathLibName)
	var extra []glua.LValue
	globals.ForEach(func(name, _ glua.LValue) {
		if !slices.Contains(kept, name.String()) {
			extra = append(extra, name)
		}
	})
	for _, name := range extra {
		globals.RawSet(name, glua.LNil)
	}
	mathLib := globals.RawGetString(glua.MathLibName).(*glua.LTable)
	mathLib.RawSetString("random", glua.LNil)
	mathLib.RawSetString("randomseed", glua.LNil)
	mathLib.RawSetString("huge", glua.LNumber(math.Inf(1)))
	stringLib := globals.RawGetString(glua.StringLibName).(*glua.LTable)
	stringLib.RawSetString("format", l.NewFunction(format))
	library := stringLib.RawGetString("match").(*glua.LFunction)
	stringLib.RawSetString("match", l.NewFunction(match(library.GFunction)))
	globals.RawSetString("tonumber", l.NewFunction(toNumber))

	server := l.CreateTable(0, 2)
	server.RawSetString("call", l.NewFunction(call))
	server.RawSetString("error_reply", l.NewFunction(errorReply))
	globals.RawSetString("redis", server)

	guard := l.CreateTable(0, 2)
	guard.RawSetString("__newindex", l.NewFunction(func(l *glua.LState) int {
		l.Error(glua.LString("Attempt to modify a readonly table"), 2)
		return 0
	}))
	guard.RawSetString("__index", l.NewFunction(func(l *glua.LState) int {
		l.Error(glua.LString("Script attempted to access nonexistent global variable '"+l.Get(2).String()+"'"), 2)
		return 0
	}))
	globals.Metatable = guard
	return l
}

// errorReply is redis.error_reply: a text without a code gets ERR.
func errorReply(l *glua.LState) int {
	text := strings.TrimPrefix(l.CheckString(1), "-")
	if !strings.Contains(text, " ") {
		text = "ERR " + text
	}
	l.Push(errorTable(l, text))
	return 1
}
