package lua_test

import (
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/resilient-go/limiter/lua"
)

// A metered message is of a holder that would take a rate.
type metered struct {
	message
	rate, burst int64 // the largest that it may have
}

func (m metered) args() []any {
	args := m.message.args()
	args[9], args[10] = m.rate, m.burst
	return args
}

// top is the rate of a limit in micro-tokens per second, as a lease can have it.
func (l limit) top() int64 {
	r := new(big.Rat).Mul(l.rate(), rat(unit))
	if r.Cmp(rat(1<<50)) > 0 {
		return 1 << 50
	}
	return floor(r)
}

var rateScenarios = []([]scenario){plentiful, parting, joining, saving, charging, small, relimiting}

func TestRatesOnMiniredis(t *testing.T) {
	for _, group := range rateScenarios {
		for _, s := range group {
			t.Run(s.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { s.run(newWorld(t, newMini(t), s.name)) })
			})
		}
	}
}

func TestRatesOnRedis(t *testing.T) {
	server := newReal(t)
	for _, group := range rateScenarios {
		for _, s := range group {
			t.Run(s.name, func(t *testing.T) {
				server.TB = t
				s.run(newWorld(t, server, s.name))
			})
		}
	}
}

// meter sends a message and checks the state that it leaves.
func (w *world) meter(m metered) answer {
	w.Helper()
	reply, err := w.eval(lua.Acquire, w.key, m.args())
	if err != nil {
		w.Fatalf("acquire: %v", err)
	}
	a := read(w, reply, len(m.needs))
	if !a.done() {
		return a
	}
	w.checkRates(a.under(m.limit), a)
	w.checkGrace(a)
	if a.rate < 0 || a.rate > m.rate || a.burst < 0 || a.burst > m.burst || a.burst > a.under(m.limit).burst || (a.rate > 0) != (a.burst > 0) {
		w.Fatalf("a rate of %d up to %d, want at most %d and %d", a.rate, a.burst, m.rate, m.burst)
	}
	if a.rate > 0 && (a.burst < unit || a.ttl == 0) {
		w.Fatalf("a rate of %d up to %d for %d us", a.rate, a.burst, a.ttl)
	}
	return a
}

var meteredText = regexp.MustCompile(`^(0|[1-9]\d*)( (0|[1-9]\d*)){3} [1-9]\d* [1-9]\d* (0|[1-9]\d*) (0|[1-9]\d*)$`)

// checkRates holds the stored hash against the header of bucket.lua: plain
// integers, and sums that are those of the records.
func (w *world) checkRates(l limit, a answer) {
	w.Helper()
	state := w.state()
	number := func(field string) int64 {
		text, present := state[field]
		if !present {
			return 0
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || !integer.MatchString(text) || n >= 1<<53 || n <= -1<<53 {
			w.Fatalf("field %s is %q, want an integer within 2^53", field, text)
		}
		return n
	}
	for _, field := range []string{"t", "f", "s", "o", "p", "d", "k", "q", "x", "e", "w", "g"} {
		number(field)
	}
	if number("t") != a.tokens || number("s") != w.now || number("o") != a.out || number("p") != a.rates || number("d") != a.demand {
		w.Fatalf("the state is %v at %d, the answer said %+v", state, w.now, a)
	}
	var out, rates, demand, parts, records int64
	for field, text := range state {
		if !strings.HasPrefix(field, "h") {
			continue
		}
		var v [8]int64
		if _, err := fmt.Sscan(text, &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]); err != nil || !meteredText.MatchString(text) {
			w.Fatalf("lease %s is %q: %v", field, text, err)
		}
		records++
		out, rates, demand = out+max(v[1], v[3]), rates+v[2], demand+v[6]
		parts += v[7]
		if v[4] > number("x") && !w.stepped {
			w.Fatalf("lease %s ends at %d, after field x: %d", field, v[4], number("x"))
		}
	}
	if out != a.out || rates != a.rates || demand != a.demand {
		w.Fatalf("the leases sum up to %d, %d, %d, the answer said %+v: %v", out, rates, demand, a, state)
	}
	if number("k") != records || number("q") != parts || parts > 1_000_000 {
		w.Fatalf("%d leases with parts of %d in all, want what is stored, at most the whole: %v", records, parts, state)
	}
	if _, warm := state["x"]; warm != (records > 0) {
		w.Fatalf("%d leases recorded, and field x is there: %v", records, warm)
	}
	if a.tokens > 0 && a.tokens+a.out > l.burst {
		w.Fatalf("%d tokens and %d out, want at most the burst of %d", a.tokens, a.out, l.burst)
	}
	if a.tokens < -l.burst {
		w.Fatalf("%d tokens, want no more debt than the burst of %d", a.tokens, l.burst)
	}
	w.checkLife(l, a)
}

// checkLife: the key outlives its leases and the time until it would be full,
// and is gone not much later.
func (w *world) checkLife(l limit, a answer) {
	w.Helper()
	full := w.untilFull(l, a)
	us := w.ttl(w.key) * 1000
	out := ceil(new(big.Rat).Quo(rat(min(a.out, l.burst)), l.rate()))
	if us < full || us < a.lastEnd || us > full+2*a.lastEnd+out+1_002_000 {
		w.Fatalf("the key lives for %d us, it is full in %d, the last lease ends in %d", us, full, a.lastEnd)
	}
}

// untilFull is how long it takes until the bucket is full if nobody asks.
func (w *world) untilFull(l limit, a answer) int64 {
	missing := rat(l.burst - a.tokens)
	if a.lastEnd == 0 {
		return ceil(missing.Quo(missing, l.rate()))
	}
	// What is gained before the last lease ends, less what they earn.
	gain := new(big.Rat).Sub(l.rate(), big.NewRat(a.rates, unit))
	gain.Mul(gain, rat(a.lastEnd))
	if room := rat(max(0, max(0, l.burst-a.out)-a.tokens)); gain.Cmp(room) > 0 {
		gain = room
	}
	if gain.Sign() > 0 {
		missing.Sub(missing, gain)
	}
	return a.lastEnd + ceil(missing.Quo(missing, l.rate()))
}
