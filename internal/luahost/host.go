// Package luahost runs the scripts of package lua without a server: in the
// caller's goroutine, by a clock that the caller owns, thousands of times a second.
//
// It is for simulations, where the same seed must give the same course and no
// time may be lost on connections. What it answers, stores and forgets is what
// Redis would, as far as the scripts can tell; anything that they do not use is an
// error rather than a guess.
package luahost

import (
	"fmt"
	"maps"
	"strconv"
	"time"

	glua "github.com/yuin/gopher-lua"

	"github.com/resilient-go/limiter/lua"
)

// A Host is a Redis that knows nothing but what our scripts use: hashes that end
// by the clock, and the commands TIME, HMGET, HSET, HDEL, HSCAN, UNLINK, DEL and
// PEXPIRE, on the one key that a script was given. Keys are independent of each
// other.
//
// A key ends at the microsecond at which its time to live is over, where Redis
// counts in whole milliseconds. The end is an instant of the clock: if the clock
// goes back, the key lives that much longer, and one that had ended without being
// looked at since is there again.
//
// A Host is not for concurrent use. It needs no Close.
type Host struct {
	clock func() int64
	data  map[string]entry
	calls uint64

	state *glua.LState
	// The script that runs: what its commands work on.
	now int64
	key string
}

// An entry is what is stored under one key.
type entry struct {
	hash hash
	end  int64 // in microseconds of the clock; 0: never
}

// New returns an empty Host. The clock gives microseconds since the Unix epoch. A
// script reads it once, at its start: time stands still while it runs.
func New(clock func() int64) *Host {
	h := &Host{clock: clock, data: map[string]entry{}}
	h.state = newState(h.call)
	return h
}

// Eval runs a script on a key. The arguments are strings, byte slices or integers.
// The reply is as go-redis gives it: for our scripts an array of strings. An error
// of the script, or of a command that it runs, is an [Error]; as in Redis, what the
// script had written by then stays.
func (h *Host) Eval(s *lua.Script, key string, args []any) (any, error) {
	proto, err := compiled(s)
	if err != nil {
		return nil, err
	}
	return h.run(proto, key, args)
}

// Drop loses a key, as an eviction or an empty restart does.
func (h *Host) Drop(key string) { delete(h.data, key) }

// Clear loses all keys.
func (h *Host) Clear() { clear(h.data) }

// Fields returns a copy of the hash under a key; nil if there is none.
func (h *Host) Fields(key string) map[string]string {
	return maps.Clone(h.live(key, h.clock()).hash)
}

// TTL returns what is left of the time to live of a key, in whole milliseconds as
// PTTL does; -1 ns if the key has none, and -2 ns if there is no such key.
func (h *Host) TTL(key string) time.Duration {
	now := h.clock()
	e := h.live(key, now)
	switch {
	case e.hash == nil:
		return -2
	case e.end == 0:
		return -1
	}
	return time.Duration((e.end-now)/1000) * time.Millisecond
}

// Snapshot copies the data. The function it returns puts the copy in place of what
// is there then, as when a replica with older data takes over; it may be called
// more than once. Times to live end when they would have ended.
func (h *Host) Snapshot() func() {
	saved := copied(h.data)
	return func() { h.data = copied(saved) }
}

// Calls returns the number of scripts that were run, those that failed included.
func (h *Host) Calls() uint64 { return h.calls }

// live returns what is under a key at an instant, and forgets what has ended. The
// hash is nil if there is nothing.
func (h *Host) live(key string, now int64) entry {
	e, ok := h.data[key]
	if ok && e.end != 0 && e.end <= now {
		delete(h.data, key)
		return entry{}
	}
	return e
}

func copied(data map[string]entry) map[string]entry {
	c := make(map[string]entry, len(data))
	for key, e := range data {
		c[key] = entry{maps.Clone(e.hash), e.end}
	}
	return c
}

// argument writes an argument as a client puts it on the wire.
func argument(a any) (glua.LString, error) {
	switch v := a.(type) {
	case string:
		return glua.LString(v), nil
	case []byte:
		return glua.LString(v), nil
	case int:
		return glua.LString(strconv.Itoa(v)), nil
	case int64:
		return glua.LString(strconv.FormatInt(v, 10)), nil
	case uint64:
		return glua.LString(strconv.FormatUint(v, 10)), nil
	}
	return "", fmt.Errorf("luahost: an argument is a %T", a)
}
