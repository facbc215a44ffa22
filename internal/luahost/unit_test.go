package luahost

import (
	"errors"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/resilient-go/limiter/lua"
)

const key = "rl:{k}"

// same fails unless there is no error, and the value is the wanted one.
func same(t testing.TB, what string, got any, err error, want any) {
	t.Helper()
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%s: the host gives\n%#v, %v, want\n%#v", what, got, err, want)
	}
}

// must runs a text that is no script of ours.
func must(t testing.TB, h *Host, text string, args ...any) any {
	t.Helper()
	v, err := h.evalText(text, key, args...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

const store = `redis.call('HSET', KEYS[1], 'a', ARGV[1]) return redis.call('PEXPIRE', KEYS[1], ARGV[2])`

func TestKeysEndByTheClock(t *testing.T) {
	now := origin
	h := New(func() int64 { return now })
	check := func(ttl time.Duration, fields map[string]string) {
		t.Helper()
		if got := h.TTL(key); got != ttl {
			t.Errorf("at %d us: it lives for %v, want %v", now-origin, got, ttl)
		}
		if got := h.Fields(key); !reflect.DeepEqual(got, fields) {
			t.Errorf("at %d us: fields %#v, want %#v", now-origin, got, fields)
		}
	}
	one := map[string]string{"a": "1"}
	check(-2, nil)
	must(t, h, `return redis.call('HSET', KEYS[1], 'a', '1')`)
	check(-1, one)
	must(t, h, store, 1, 20)
	check(20*time.Millisecond, one)
	now += 1
	check(19*time.Millisecond, one)
	now += 19_998
	check(0, one)
	now -= 1_000_000 // the end is an instant
	check(time.Second, one)
	now += 1_000_001
	check(-2, nil)
	now -= 1_000_000 // it was seen to be gone
	check(-2, nil)

	must(t, h, store, 1, 20)
	must(t, h, `return redis.call('HSET', KEYS[1], 'b', '2')`) // keeps the time to live
	check(20*time.Millisecond, map[string]string{"a": "1", "b": "2"})
	now += 20_000
	must(t, h, `return redis.call('HSET', KEYS[1], 'b', '2')`) // is a new key
	check(-1, map[string]string{"b": "2"})
	must(t, h, `return redis.call('DEL', KEYS[1])`)
	must(t, h, store, 3, int64(1<<62))
	now += 1 << 60
	if ttl := h.TTL(key); ttl <= 0 {
		t.Errorf("a key for ever lives for %v", ttl)
	}
}

func TestTimeStandsStillInAScript(t *testing.T) {
	reads := int64(0)
	h := New(func() int64 { reads++; return 12_000_345 + reads })
	got := must(t, h, `local a, b = redis.call('TIME'), redis.call('TIME') return {a[1], a[2], b[1], b[2]}`)
	same(t, "two TIMEs", got, nil, []any{"12", "346", "12", "346"})
	same(t, "the next TIME", must(t, h, `return redis.call('TIME')`), nil, []any{"12", "347"})
}

func TestDataIsLostAndPutBack(t *testing.T) {
	h := New(func() int64 { return origin })
	write := func(key, value string) {
		t.Helper()
		if _, err := h.evalText(store, key, value, "1000"); err != nil {
			t.Fatal(err)
		}
	}
	check := func(a, b string) {
		t.Helper()
		if h.Fields("a")["a"] != a || h.Fields("b")["a"] != b {
			t.Fatalf("the keys hold %v and %v, want %q and %q", h.Fields("a"), h.Fields("b"), a, b)
		}
	}
	write("a", "1")
	write("b", "2")
	older := h.Snapshot()
	write("a", "3")
	newer := h.Snapshot()
	h.Drop("a")
	check("", "2")
	h.Drop("a")
	h.Clear()
	check("", "")
	newer()
	check("3", "2")
	write("b", "4")
	older()
	check("1", "2")
	write("a", "5")
	older()
	check("1", "2")
	newer()
	check("3", "2")
	if ttl := h.TTL("a"); ttl != time.Second {
		t.Errorf("what was put back lives for %v, want 1s", ttl)
	}
	h.Fields("a")["a"] = "6"
	check("3", "2")
	if h.Calls() != 5 {
		t.Errorf("%d calls, want 5", h.Calls())
	}
}

func TestRunsAreApart(t *testing.T) {
	h := New(func() int64 { return origin })
	same(t, "arguments", must(t, h, `return {#ARGV, ARGV[1], ARGV[2], ARGV[3], ARGV[4]}`, "x", 1, []byte("y"), uint64(1<<63)), nil,
		[]any{int64(4), "x", "1", "y", "9223372036854775808"})
	same(t, "the next arguments", must(t, h, `return {#ARGV, #KEYS}`), nil, []any{int64(0), int64(1)})
	_, err := h.evalText(`redis.call('HSET', KEYS[1], 'a', '1') local function f() error('gone') end f()`, key)
	var answer redis.Error
	if !errors.As(err, &answer) || err.Error() != "ERR user_script:1: gone" {
		t.Errorf("the error is %#v, want one of Redis", err)
	}
	if got := h.Fields(key); !maps.Equal(got, map[string]string{"a": "1"}) {
		t.Errorf("a script that failed left %v, want what it wrote", got)
	}
	same(t, "after an error", must(t, h, `return redis.call('HMGET', KEYS[1], 'a')`), nil, []any{"1"})
	if h.Calls() != 4 {
		t.Errorf("%d calls, want 4", h.Calls())
	}
}

// Scripts that go too deep or save too much fail as others do.
func TestAHostOutlivesItsScripts(t *testing.T) {
	h := New(func() int64 { return origin })
	if got, err := h.evalText(`local function f(n) return 1 + f(n + 1) end return f(1)`, key); err == nil {
		t.Errorf("endless recursion gives %v", got)
	}
	many := `local t = {} for i = 1, 4000 do t[i] = string.format('%.0f', i - i % 2) end return redis.call('HSET', KEYS[1], unpack(t))`
	same(t, "many fields", must(t, h, many), nil, int64(2000))
}

// Hosts share nothing that a run changes.
func TestHostsInManyGoroutines(t *testing.T) {
	var group sync.WaitGroup
	var replies [4]any
	for i := range replies {
		group.Go(func() {
			h := New(func() int64 { return origin })
			for n := range int64(50) {
				m := message{id: "a", seq: n + 1, limit: limits[0], ttl: 1_000_000, needs: []need{{tokens: unit, count: 1}}}
				replies[i], _ = h.Eval(lua.Acquire, key, m.args())
			}
		})
	}
	group.Wait()
	want := strings.Fields("1 0 0 0 0 0 0 50 0 0 0 0 0 0 0")
	for _, reply := range replies {
		got := make([]string, 0, len(want))
		for _, v := range reply.([]any) {
			got = append(got, v.(string))
		}
		same(t, "the last reply", got, nil, want)
	}
}

// A course with more holders than a small hash holds is the same each time.
func TestTheSameCourseAgain(t *testing.T) {
	play := func() (transcript []any) {
		now := origin
		h := New(func() int64 { return now })
		l := limit{num: 100_000, den: 1, burst: 100_000 * unit}
		for i := range int64(2500) {
			now += i * 7 % 1000
			m := message{id: strconv.FormatInt(i*7%1500, 10), seq: i + 1, limit: l, ttl: 600_000, want: 3 * unit}
			reply, err := h.Eval(lua.Acquire, key, m.args())
			if err != nil {
				t.Fatal(err)
			}
			transcript = append(transcript, reply, len(h.Fields(key)))
		}
		return append(transcript, h.Fields(key))
	}
	first := play()
	largest := 0
	for _, v := range first {
		if n, ok := v.(int); ok {
			largest = max(largest, n)
		}
	}
	if largest <= whole {
		t.Errorf("the hash had %d fields at most: the test shows nothing", largest)
	}
	if again := play(); !reflect.DeepEqual(first, again) {
		t.Error("the course went another way")
	}
}
