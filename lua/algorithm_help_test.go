package lua_test

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/resilient-go/limiter/lua"
)

// others are the algorithms besides the token bucket, by their suffix.
var others = map[string]*lua.Algorithm{
	"leaky": lua.LeakyBucket, "fixed": lua.FixedWindow, "log": lua.SlidingLog, "rolling": lua.RollingWindow,
}

// A timedAnswer is the reply of an algorithm that may tell the time.
type timedAnswer struct {
	answer
	fits  []int64 // per need; of peek and reset one
	reset int64
}

// ask sends a message to an algorithm.
func (w *world) ask(algo *lua.Algorithm, m message) timedAnswer {
	w.Helper()
	return w.call(algo, algo.Acquire, m.args(), len(m.needs))
}

// look is peek or reset of an algorithm.
func (w *world) look(algo *lua.Algorithm, op *lua.Script, l limit) timedAnswer {
	w.Helper()
	args := l.args()
	if algo.Timed {
		args = append(args, op.Name())
	}
	return w.call(algo, op, args, -1)
}

func (w *world) call(algo *lua.Algorithm, script *lua.Script, args []any, needs int) timedAnswer {
	w.Helper()
	reply, err := w.eval(script, w.key, args)
	if err != nil {
		w.Fatalf("%s: %v", script.Name(), err)
	}
	array, isArray := reply.([]any)
	if !algo.Timed || !isArray || len(array) < 10 && needs >= 0 || len(array) < 9 {
		return timedAnswer{answer: read(w, reply, needs)}
	}
	// What is told besides stands behind what read knows and before another limit.
	extra := max(1, needs) + 1
	end := len(array)
	if array[1] == str(other) {
		end -= 4
	}
	var a timedAnswer
	for _, v := range array[end-extra : end] {
		n, err := strconv.ParseInt(v.(string), 10, 64)
		if err != nil || !integer.MatchString(v.(string)) {
			w.Fatalf("%v in the reply %v", v, array)
		}
		a.fits = append(a.fits, n)
	}
	a.reset = a.fits[extra-1]
	a.fits = a.fits[:max(needs, 1)]
	if needs == 0 {
		w.Fatalf("a message without needs is sent by tell")
	}
	a.answer = read(w, append(array[:end-extra:end-extra], array[end:]...), needs)
	return a
}

// tell sends a message without needs.
func (w *world) tell(algo *lua.Algorithm, m message) answer {
	w.Helper()
	reply, err := w.eval(algo.Acquire, w.key, m.args())
	if err != nil {
		w.Fatalf("acquire: %v", err)
	}
	array := reply.([]any)
	if len(array) <= 7 { // a status that changes nothing
		return read(w, reply, 0)
	}
	end := len(array)
	if array[1] == str(other) {
		end -= 4
	}
	return read(w, append(array[:end-1:end-1], array[end:]...), 0)
}

// everywhere runs f on miniredis and on a redis-server.
func everywhere(t *testing.T, key string, f func(w *world)) {
	t.Helper()
	t.Run("miniredis", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { f(newWorld(t, newMini(t), key)) })
	})
	t.Run("redis-server", func(t *testing.T) { f(newWorld(t, newReal(t), key)) })
}

// perWindow is a limit of n per period for those that count in windows.
func perWindow(n int64, period time.Duration) limit { return per(n, period, n) }
