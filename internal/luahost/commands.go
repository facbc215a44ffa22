package luahost

import (
	"fmt"
	"math"
	"strconv"

	glua "github.com/yuin/gopher-lua"
)

// The commands that scripts run by redis.call, each with its name and arguments.
// They answer as Redis answers, and fail with the text of Redis where it has one.
var commands = map[string]func(h *Host, args []string) (glua.LValue, error){
	"TIME":    (*Host).time,
	"HMGET":   (*Host).hmget,
	"HSET":    (*Host).hset,
	"HDEL":    (*Host).hdel,
	"HSCAN":   (*Host).hscan,
	"UNLINK":  (*Host).del,
	"DEL":     (*Host).del,
	"PEXPIRE": (*Host).pexpire,
}

// call is redis.call.
func (h *Host) call(l *glua.LState) int {
	args := make([]string, l.GetTop())
	for i := range args {
		switch v := l.Get(i + 1).(type) {
		case glua.LString:
			args[i] = string(v)
		case glua.LNumber:
			args[i] = numberText(float64(v))
		default:
			return raise(l, "ERR Lua redis lib command arguments must be strings or integers")
		}
	}
	if len(args) == 0 {
		return raise(l, "ERR Please specify at least one argument for this redis.call() call")
	}
	command := commands[args[0]]
	if command == nil {
		return raise(l, fmt.Sprintf("ERR luahost has no command %q", args[0]))
	}
	reply, err := command(h, args)
	if err != nil {
		return raise(l, err.Error())
	}
	l.Push(reply)
	return 1
}

func (h *Host) time(args []string) (glua.LValue, error) {
	if len(args) != 1 {
		return nil, arity(args)
	}
	t := h.state.CreateTable(2, 0)
	t.Append(glua.LString(strconv.FormatInt(h.now/1e6, 10)))
	t.Append(glua.LString(strconv.FormatInt(h.now%1e6, 10)))
	return t, nil
}

func (h *Host) hmget(args []string) (glua.LValue, error) {
	e, err := h.target(args, 3)
	if err != nil {
		return nil, err
	}
	t := h.state.CreateTable(len(args)-2, 0)
	for _, field := range args[2:] {
		if v, ok := e.hash[field]; ok {
			t.Append(glua.LString(v))
		} else {
			t.Append(glua.LFalse)
		}
	}
	return t, nil
}

func (h *Host) hset(args []string) (glua.LValue, error) {
	e, err := h.target(args, 4)
	if err != nil {
		return nil, err
	}
	if len(args)%2 != 0 {
		return nil, arity(args)
	}
	if e.hash == nil {
		e.hash = hash{}
		h.data[h.key] = e
	}
	before := len(e.hash)
	for i := 2; i < len(args); i += 2 {
		e.hash[args[i]] = args[i+1]
	}
	return glua.LNumber(len(e.hash) - before), nil
}

func (h *Host) hdel(args []string) (glua.LValue, error) {
	e, err := h.target(args, 3)
	if err != nil {
		return nil, err
	}
	before := len(e.hash)
	for _, field := range args[2:] {
		delete(e.hash, field)
	}
	if before > 0 && len(e.hash) == 0 {
		delete(h.data, h.key)
	}
	return glua.LNumber(before - len(e.hash)), nil
}

func (h *Host) hscan(args []string) (glua.LValue, error) {
	e, err := h.target(args, 3)
	if err != nil {
		return nil, err
	}
	cursor, ok := parseCursor(args[2])
	if !ok {
		return nil, Error("ERR invalid cursor")
	}
	count := 10
	switch {
	case len(args) == 3:
	case len(args) == 5 && args[3] == "COUNT":
		if count, err = strconv.Atoi(args[4]); err != nil {
			return nil, errNotInteger
		}
		if count < 1 {
			return nil, errSyntax
		}
	default:
		return nil, errSyntax
	}
	names, next := e.hash.scan(cursor, count)
	page := h.state.CreateTable(2*len(names), 0)
	for _, name := range names {
		page.Append(glua.LString(name))
		page.Append(glua.LString(e.hash[name]))
	}
	t := h.state.CreateTable(2, 0)
	t.Append(glua.LString(strconv.FormatUint(uint64(next), 10)))
	t.Append(page)
	return t, nil
}

func (h *Host) del(args []string) (glua.LValue, error) {
	e, err := h.target(args, 2)
	if err != nil {
		return nil, err
	}
	if len(args) != 2 {
		return nil, arity(args)
	}
	if e.hash == nil {
		return glua.LNumber(0), nil
	}
	delete(h.data, h.key)
	return glua.LNumber(1), nil
}

func (h *Host) pexpire(args []string) (glua.LValue, error) {
	e, err := h.target(args, 3)
	if err != nil {
		return nil, err
	}
	if len(args) != 3 {
		return nil, arity(args)
	}
	ms, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return nil, errNotInteger
	}
	switch {
	case e.hash == nil:
		return glua.LNumber(0), nil
	case ms <= 0:
		delete(h.data, h.key)
	default:
		e.end = h.now + min(ms, (math.MaxInt64-h.now)/1000)*1000
		h.data[h.key] = e
	}
	return glua.LNumber(1), nil
}

// target checks that a command has so many words and goes to the key that the
// script was given, and returns what is there.
func (h *Host) target(args []string, least int) (entry, error) {
	if len(args) < least {
		return entry{}, arity(args)
	}
	if args[1] != h.key {
		return entry{}, Error(fmt.Sprintf("ERR the script was not given the key %q", args[1]))
	}
	return h.live(h.key, h.now), nil
}
