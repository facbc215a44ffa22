package luahost

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/internal/redistest"
)

// A snippet is a piece of a script that starts on a missing key, and what it gives:
// a reply, or the beginning of an error.
type snippet struct {
	text string
	want any
	err  string
}

// What the language and the commands do, on the host and on a redis-server alike.
var snippets = []snippet{
	// Values of a reply.
	{text: `return 3.99`, want: int64(3)},
	{text: `return -3.99`, want: int64(-3)},
	{text: `return '3.99'`, want: "3.99"},
	{text: `return true`, want: int64(1)},
	{text: `return false`, err: "redis: nil"},
	{text: `return nil`, err: "redis: nil"},
	{text: `return`, err: "redis: nil"},
	{text: `return {}`, want: []any{}},
	{text: `return {1, '2', false, {3.5, {}}, true}`, want: []any{int64(1), "2", nil, []any{int64(3), []any{}}, int64(1)}},
	{text: `return {1, nil, 3}`, want: []any{int64(1)}},
	{text: `return {ok = 'FINE'}`, want: "FINE"},
	{text: `return {err = 'BAD thing'}`, err: "BAD thing"},
	{text: `return redis.error_reply('BAD thing')`, err: "BAD thing"},
	{text: `return redis.error_reply('-BAD thing')`, err: "BAD thing"},
	{text: `return redis.error_reply('thing')`, err: "ERR thing"},

	// Arguments.
	{text: `return {#KEYS, KEYS[1], #ARGV}`, want: []any{int64(1), "k", int64(0)}},

	// Numbers and texts.
	{text: `return string.format('%.0f %.0f %.0f %.0f', 0, math.fmod(-4, 2), 9007199254740991, -9007199254740991)`, want: "0 -0 9007199254740991 -9007199254740991"},
	{text: `return string.format('%.0f %.0f %.0f %.0f', 0.5, 1.5, 2.5, -0.4)`, want: "0 2 2 -0"},
	{text: `return string.format('a%.0fb', 1e300 / 1e290)`, want: "a10000000000b"},
	{text: `return string.format('%.0f', 1e22)`, want: "10000000000000000000000"},
	{text: `return string.format('%.0f %.0f', 1 / 0, -1 / 0)`, want: "inf -inf"},
	{text: `return string.format('%.0f', math.huge)`, want: "inf"},
	{text: `local zero = math.fmod(-4, 2) return string.format('%.0f %.0f %.0f %.0f', math.max(0, zero), math.max(zero, 0), math.min(0, zero), math.min(zero, 0))`, want: "0 -0 0 -0"},
	{text: `return string.format('no number', 1)`, want: "no number"},
	{text: `return string.format('%.0f%.0f', '12', '1e3')`, want: "121000"},
	{text: `return string.format('%.0f', 1, 2)`, want: "1"},
	{text: `return string.format('%.0f', {})`, err: "ERR user_script:1: bad argument #2 to 'format' (number expected, got table)"},
	{text: `return string.format('%.0f %.0f', 1)`, err: "ERR user_script:1: bad argument #3 to 'format' (no value)"},
	{text: `return string.format('%.0f', 'x')`, err: "ERR user_script:1: bad argument #2 to 'format' (number expected, got string)"},
	{text: `return {tonumber('12'), tonumber(' -12 '), tonumber('1e3'), tonumber('0x1f'), tonumber('010'), tonumber('2.5') * 2}`, want: []any{int64(12), int64(-12), int64(1000), int64(31), int64(10), int64(5)}},
	{text: `return string.format('%.0f', tonumber('18446744073709551615'))`, want: "18446744073709551616"},
	{text: `local t = {} for _, s in ipairs({'', ' ', 'x', '1x', '1_000', '0b1', '1 2', '--1', '.', '0x'}) do t[#t + 1] = tonumber(s) and 'number' or 'none' end return t`, want: []any{"none", "none", "none", "none", "none", "none", "none", "none", "none", "none"}},
	{text: `return {tonumber(nil) == nil and 1, tonumber(true) == nil and 1, tonumber({}) == nil and 1}`, want: []any{int64(1), int64(1), int64(1)}},
	{text: `return {math.fmod(7, 3), math.fmod(-7, 3), math.max(1, 2), math.min(1, 2), math.floor(-1.5), 7 % 3}`, want: []any{int64(1), int64(-1), int64(2), int64(1), int64(-2), int64(1)}},
	{text: `return {string.match('12 345 6', '^(%d+) (%d+) (%d+)$')}`, want: []any{"12", "345", "6"}},
	{text: `return {string.match('12 345 ', '^(%d+) (%d+) (%d+)$') == nil and 1, string.match('2 x', '^%d+')}`, want: []any{int64(1), "2"}},
	{text: `return {string.match('12 345 67', '^%d+ %d+'), string.match('12 345', '^%d+ %d+$'), string.match('12 345 ', '^%d+ %d+$') == nil and 1}`, want: []any{"12 345", "12 345", int64(1)}},
	{text: `return {string.match('12 345 67', '^(%d+) (%d+)')}`, want: []any{"12", "345"}},
	{text: `local t = {} for _, s in ipairs({'', ' ', '1', '1 ', ' 1 2', '1  2', '1 2x', '1 2 3', '-1 2', 'x'}) do t[#t + 1] = string.match(s, '^(%d+) (%d+)$') and 'yes' or 'no' end return t`, want: []any{"no", "no", "no", "no", "no", "no", "no", "no", "no", "no"}},
	{text: `return {string.match('a12 345', '(%d+) (%d+)')}`, want: []any{"12", "345"}},
	{text: `return {string.match('12 345', '^%d+ (%d+)'), string.match('12345', '^(%d+)5$'), string.match('1 23', '^%d+', 3), string.match(12, '^%d+')}`, want: []any{"345", "1234", "23", "12"}},
	{text: `return {string.match('12 345 6', '^(%d+) (%d+) ') }`, want: []any{"12", "345"}},
	{text: `return string.match('12 345', '^')`, want: ""},
	{text: `return {string.sub('hello', 1, 1), #'hello', 'a' .. 1 .. 'b'}`, want: []any{"h", int64(5), "a1b"}},
	{text: `return {unpack({1, 2, 3})}`, want: []any{int64(1), int64(2), int64(3)}},

	// Errors of scripts.
	{text: `return nil + 1`, err: "ERR user_script:1: "},
	{text: `local t = nil
return t.x`, err: "ERR user_script:2: "},
	{text: `error('gone')`, err: "ERR user_script:1: gone"},
	{text: `error({err = 'GONE for good'})`, err: "GONE for good"},
	{text: `x = 1`, err: "ERR user_script:1: Attempt to modify a readonly table"},
	{text: `local function f() y = 1 end f()`, err: "ERR user_script:1: Attempt to modify a readonly table"},
	{text: `return io.open('x')`, err: "ERR user_script:1: Script attempted to access nonexistent global variable 'io'"},
	{text: `return dofile('x')`, err: "ERR user_script:1: Script attempted to access nonexistent global variable 'dofile'"},
	{text: `return require('x')`, err: "ERR user_script:1: Script attempted to access nonexistent global variable 'require'"},
	{text: `return )`, err: "ERR Error compiling script (new function): "},

	// Commands.
	{text: `return redis.call('HMGET', KEYS[1], 'a', 'b')`, want: []any{nil, nil}},
	{text: `return {redis.call('HSET', KEYS[1], 'a', '1', 'b', '2'), redis.call('HSET', KEYS[1], 'b', '3', 'c', '4'), redis.call('HMGET', KEYS[1], 'b', 'x', 'c')}`, want: []any{int64(2), int64(1), []any{"3", nil, "4"}}},
	{text: `redis.call('HSET', KEYS[1], 'a', 12, 'b', 0.1, 'c', -3, 'd', 1e20) return redis.call('HMGET', KEYS[1], 'a', 'b', 'c', 'd')`, want: []any{"12", "0.10000000000000001", "-3", "1e+20"}},
	{text: `redis.call('HSET', KEYS[1], 'a', '1', 'a', '2') return redis.call('HMGET', KEYS[1], 'a')`, want: []any{"2"}},
	{text: `return {redis.call('HDEL', KEYS[1], 'a'), redis.call('HSET', KEYS[1], 'a', '1', 'b', '2'), redis.call('HDEL', KEYS[1], 'a', 'x', 'a'), redis.call('HDEL', KEYS[1], 'b'), redis.call('DEL', KEYS[1])}`, want: []any{int64(0), int64(2), int64(1), int64(1), int64(0)}},
	{text: `redis.call('HSET', KEYS[1], 'a', '1') return {redis.call('DEL', KEYS[1]), redis.call('DEL', KEYS[1]), redis.call('HMGET', KEYS[1], 'a')}`, want: []any{int64(1), int64(0), []any{nil}}},
	{text: `redis.call('HSET', KEYS[1], 'a', '1') return {redis.call('UNLINK', KEYS[1]), redis.call('UNLINK', KEYS[1])}`, want: []any{int64(1), int64(0)}},
	{text: `return {redis.call('PEXPIRE', KEYS[1], '1000'), redis.call('HSET', KEYS[1], 'a', '1'), redis.call('PEXPIRE', KEYS[1], '100000'), redis.call('HMGET', KEYS[1], 'a')}`, want: []any{int64(0), int64(1), int64(1), []any{"1"}}},
	{text: `redis.call('HSET', KEYS[1], 'a', '1') return {redis.call('PEXPIRE', KEYS[1], '0'), redis.call('HMGET', KEYS[1], 'a')}`, want: []any{int64(1), []any{nil}}},
	{text: `redis.call('HSET', KEYS[1], 'a', '1') return {redis.call('PEXPIRE', KEYS[1], '-5'), redis.call('HMGET', KEYS[1], 'a')}`, want: []any{int64(1), []any{nil}}},
	{text: `return redis.call('HSCAN', KEYS[1], '0', 'COUNT', '32')`, want: []any{"0", []any{}}},
	{text: `redis.call('HSET', KEYS[1], 'a', '1', 'b', '2') return redis.call('HSCAN', KEYS[1], '0', 'COUNT', '1')`, want: []any{"0", []any{"a", "1", "b", "2"}}},
	{text: `local t = redis.call('TIME') return {#t, type(t[1]), #t[1], type(t[2])}`, want: []any{int64(2), "string", int64(10), "string"}},

	// Errors of commands.
	{text: `return redis.call('HSET', KEYS[1], 'a')`, err: "ERR "},
	{text: `return redis.call('HSET', KEYS[1], 'a', '1', 'b')`, err: "ERR wrong number of arguments for 'hset' command"},
	{text: `return redis.call('HMGET', KEYS[1])`, err: "ERR "},
	{text: `return redis.call('TIME', 'x')`, err: "ERR "},
	{text: `return redis.call('PEXPIRE', KEYS[1], '1.5')`, err: "ERR value is not an integer or out of range"},
	{text: `return redis.call('HSCAN', KEYS[1], 'x')`, err: "ERR invalid cursor"},
	{text: `redis.call('HSET', KEYS[1], 'a', '1') return redis.call('HSCAN', KEYS[1], '0', 'COUNT', 'x')`, err: "ERR value is not an integer or out of range"},
	{text: `redis.call('HSET', KEYS[1], 'a', '1') return redis.call('HSCAN', KEYS[1], '0', 'COUNT', '0')`, err: "ERR syntax error"},
	{text: `redis.call('HSET', KEYS[1], 'a', '1') return redis.call('HSCAN', KEYS[1], '0', 'COUNT')`, err: "ERR syntax error"},
	{text: `return redis.call('HMGET', KEYS[1], false)`, err: "ERR Lua redis lib command arguments must be strings or integers"},
	{text: `return redis.call()`, err: "ERR Please specify at least one argument for this "},
}

func TestSnippetsAsOnRedis(t *testing.T) {
	rdb := redistest.Server(t).Client()
	for _, s := range snippets {
		h := New(func() int64 { return origin })
		got, err := h.evalText(s.text, "k")
		s.check(t, "the host", got, err)
		rdb.Del(t.Context(), "k")
		got, err = rdb.Eval(t.Context(), s.text, []string{"k"}).Result()
		s.check(t, "the server", got, err)
	}
}

func (s snippet) check(t *testing.T, who string, got any, err error) {
	t.Helper()
	switch {
	case s.err == "":
		if err != nil || !reflect.DeepEqual(got, s.want) {
			t.Errorf("%s\n%s gives %#v, %v, want %#v", s.text, who, got, err, s.want)
		}
	case err == nil || !strings.HasPrefix(err.Error(), s.err) || got != nil:
		t.Errorf("%s\n%s gives %#v, %v, want the error %q", s.text, who, got, err, s.err)
	case errors.Is(err, redis.Nil) != (s.err == "redis: nil"):
		t.Errorf("%s\n%s gives the error %#v", s.text, who, err)
	}
}

// What Redis can do and the scripts do not use is an error that says so.
func TestAnythingElseIsAnError(t *testing.T) {
	for text, want := range map[string]string{
		`return redis.call('GET', KEYS[1])`:                       `ERR luahost has no command "GET"`,
		`return redis.call('time')`:                               `ERR luahost has no command "time"`,
		`return redis.call('HMGET', 'other', 'a')`:                `ERR the script was not given the key "other"`,
		`return redis.call('DEL', KEYS[1], KEYS[1])`:              `ERR wrong number of arguments for 'del' command`,
		`return redis.call('PEXPIRE', KEYS[1], '1', 'NX')`:        `ERR wrong number of arguments for 'pexpire' command`,
		`return redis.call('HSCAN', KEYS[1], '0', 'MATCH', 'h*')`: `ERR syntax error`,
		`return tonumber('10', 2)`:                                `ERR user_script:1: luahost: tonumber takes no base`,
		`return string.format('%d', 7)`:                           `ERR user_script:1: luahost: string.format knows %.0f alone`,
		`return math.random()`:                                    `ERR user_script:1: attempt to call a non-function object`,
		`return redis.pcall('TIME')`:                              `ERR user_script:1: attempt to call a non-function object`,
		`return tostring(1)`:                                      `ERR user_script:1: Script attempted to access nonexistent global variable 'tostring'`,
		`return coroutine.create()`:                               `ERR user_script:1: Script attempted to access nonexistent global variable 'coroutine'`,
		`return function() end`:                                   `luahost: the script returns a function`,
	} {
		h := New(func() int64 { return origin })
		if got, err := h.evalText(text, "k"); err == nil || !strings.HasPrefix(err.Error(), want) || got != nil {
			t.Errorf("%s\ngives %#v, %v, want the error %q", text, got, err, want)
		}
	}
	h := New(func() int64 { return origin })
	if got, err := h.evalText(`return ARGV[1]`, "k", 1.5); err == nil || err.Error() != "luahost: an argument is a float64" {
		t.Errorf("an argument of another type gives %v, %v", got, err)
	}
}

// evalText runs a text that is no script of ours.
func (h *Host) evalText(text, key string, args ...any) (any, error) {
	proto, err := compile(text)
	if err != nil {
		return nil, err
	}
	return h.run(proto, key, args)
}
