package luahost

import (
	"fmt"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
	glua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"

	"github.com/resilient-go/limiter/lua"
)

// protos holds what each script was compiled to, once per process: func() (*glua.FunctionProto, error) by *lua.Script.
var protos sync.Map

func compiled(s *lua.Script) (*glua.FunctionProto, error) {
	once, ok := protos.Load(s)
	if !ok {
		once, _ = protos.LoadOrStore(s, sync.OnceValues(func() (*glua.FunctionProto, error) {
			return compile(s.Text())
		}))
	}
	return once.(func() (*glua.FunctionProto, error))()
}

func compile(text string) (*glua.FunctionProto, error) {
	chunk, err := parse.Parse(strings.NewReader(text), "user_script")
	if err != nil {
		return nil, Error("ERR Error compiling script (new function): " + err.Error())
	}
	proto, err := glua.Compile(chunk, "user_script")
	if err != nil {
		return nil, Error("ERR Error compiling script (new function): " + err.Error())
	}
	return proto, nil
}

// run runs a script as Redis does: with locals of its own, and without globals
// that outlive it.
func (h *Host) run(proto *glua.FunctionProto, key string, args []any) (any, error) {
	h.calls++
	l := h.state
	argv := l.CreateTable(len(args), 0)
	for _, a := range args {
		text, err := argument(a)
		if err != nil {
			return nil, err
		}
		argv.Append(text)
	}
	keys := l.CreateTable(1, 0)
	keys.Append(glua.LString(key))
	l.G.Global.RawSetString("KEYS", keys)
	l.G.Global.RawSetString("ARGV", argv)
	h.now, h.key = h.clock(), key

	defer l.SetTop(0)
	l.Push(l.NewFunctionFromProto(proto))
	if err := l.PCall(0, 1, nil); err != nil {
		return nil, failure(err)
	}
	reply, err := goValue(l.Get(-1))
	if err == nil && reply == nil {
		err = redis.Nil
	}
	if err != nil {
		return nil, err
	}
	return reply, nil
}

// goValue is a value of Lua as go-redis gives it, or the error that it stands for.
// Numbers lose their fraction and arrays end at the first nil, as in Redis.
func goValue(v glua.LValue) (any, error) {
	switch v := v.(type) {
	case glua.LString:
		return string(v), nil
	case glua.LNumber:
		return int64(v), nil
	case glua.LBool:
		if v {
			return int64(1), nil
		}
		return nil, nil
	case *glua.LNilType:
		return nil, nil
	case *glua.LTable:
		if text, ok := v.RawGetString("err").(glua.LString); ok {
			return nil, Error(text)
		}
		if text, ok := v.RawGetString("ok").(glua.LString); ok {
			return string(text), nil
		}
		array := make([]any, 0, v.Len())
		for i := 1; ; i++ {
			element := v.RawGetInt(i)
			if element == glua.LNil {
				return array, nil
			}
			e, err := goValue(element)
			if err != nil {
				e = err // go-redis keeps an error inside of an array
			}
			array = append(array, e)
		}
	}
	return nil, fmt.Errorf("luahost: the script returns a %s", v.Type())
}
