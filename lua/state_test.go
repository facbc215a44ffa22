package lua_test

import (
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

var (
	limitText = regexp.MustCompile(`^1 [1-9]\d* [1-9]\d* [1-9]\d* \d+$`)
	leaseText = regexp.MustCompile(`^\d+ [1-9]\d* 0 0 [1-9]\d* [1-9]\d* \d+ \d+$`)
)

// checkState holds the stored hash against the header of bucket.lua and against
// the answer that told of it.
func (w *world) checkState(l limit, a answer) {
	w.Helper()
	state := w.state()
	number := func(field string) int64 {
		text, present := state[field]
		if !present {
			return 0
		}
		if field == "f" && text == "0" || text == "0" && field != "t" && field != "c" {
			w.Fatalf("field %s is stored although it is 0", field)
		}
		if !integer.MatchString(text) {
			w.Fatalf("field %s is %q, want an integer", field, text)
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n >= 1<<53 || n <= -1<<53 {
			w.Fatalf("field %s is %s, beyond 2^53", field, text)
		}
		return n
	}
	if want := fmt.Sprintf("1 %d %d %d %d", l.num, l.den, l.burst, l.version); state["l"] != want || !limitText.MatchString(want) {
		w.Fatalf("field l is %q, want %q", state["l"], want)
	}
	if g := number("g"); g != 0 && (a.status == ok || g <= w.now) {
		w.Fatalf("the stored limit stands until %d at %d: %+v", g, w.now, a)
	}
	if frac := number("f"); frac < 0 || frac >= l.den {
		w.Fatalf("field f is %d, want less than %d", frac, l.den)
	}
	if tokens := number("t"); tokens != a.tokens {
		w.Fatalf("field t is %d, the answer said %d", tokens, a.tokens)
	}
	if at := number("s"); at != w.now {
		w.Fatalf("field s is %d, want now: %d", at, w.now)
	}
	if number("o") != a.out || number("p") != a.rates || number("d") != a.demand {
		w.Fatalf("the sums are %v, the answer said %+v", state, a)
	}
	if a.lastEnd < 0 || a.lastEnd > 30_000_000 || a.lastEnd > 0 && number("x") != w.now+a.lastEnd {
		w.Fatalf("the last lease ends in %d us, field x is %s at %d", a.lastEnd, state["x"], w.now)
	}

	var out, rates, demand, parts, records int64
	for field, text := range state {
		if !strings.HasPrefix(field, "h") {
			continue
		}
		if !leaseText.MatchString(text) {
			w.Fatalf("lease %s is %q", field, text)
		}
		var v [8]int64
		if _, err := fmt.Sscan(text, &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]); err != nil {
			w.Fatalf("lease %s is %q: %v", field, text, err)
		}
		out, rates, demand = out+max(v[1], v[3]), rates+v[2], demand+v[6]
		parts, records = parts+v[7], records+1
		// Only a lease that was granted before the clock stepped back ends later.
		if v[4] > number("x") && !w.stepped {
			w.Fatalf("lease %s ends at %d, after field x: %d", field, v[4], number("x"))
		}
	}
	if out != a.out || rates != a.rates || demand != a.demand {
		w.Fatalf("the leases sum up to %d, %d, %d, the answer said %+v", out, rates, demand, a)
	}
	if number("k") != records || number("q") != parts || parts > 1_000_000 {
		w.Fatalf("%d leases with parts of %d in all, want what is stored, at most the whole: %v", records, parts, state)
	}
	if out == 0 {
		for _, field := range []string{"o", "p", "d", "k", "q", "x", "e", "c"} {
			if _, present := state[field]; present {
				w.Fatalf("the key is cold and has a field %s: %v", field, state)
			}
		}
	}
	if a.tokens > 0 && a.tokens+a.out > l.burst {
		w.Fatalf("%d tokens and %d out, want at most the burst of %d", a.tokens, a.out, l.burst)
	}
	if a.tokens > l.burst || a.tokens < -l.burst {
		w.Fatalf("%d tokens, want within ± the burst of %d", a.tokens, l.burst)
	}
	w.checkTTL(l, a)
}

// checkGrace: after a message there is an end to how long a limit stands that was
// not asked for, and nothing of that is kept when it is over.
func (w *world) checkGrace(a answer) {
	w.Helper()
	text := w.state()["g"]
	g, err := strconv.ParseInt("0"+text, 10, 64)
	if err != nil || a.status == ok && text != "" || a.status == other && (g <= w.now || g > w.now+longest) {
		w.Fatalf("the stored limit stands until %q at %d: %+v", text, w.now, a)
	}
}

// checkTTL: a key lives until it would be full, and its last lease has ended,
// and a second longer; and not for much more than that.
func (w *world) checkTTL(l limit, a answer) {
	w.Helper()
	missing := new(big.Rat).SetInt64(l.burst - a.tokens)
	full := ceil(missing.Quo(missing, l.rate()))
	after := a.lastEnd + ceil(new(big.Rat).Quo(new(big.Rat).SetInt64(min(a.out, l.burst)), l.rate()))
	want := (max(full, after)+999)/1000 + 1000
	if ttl := w.ttl(w.key); ttl != want {
		w.Fatalf("the key lives for %d ms, want %d: %+v", ttl, want, a)
	}
}

// ceil rounds up.
func ceil(r *big.Rat) int64 {
	n := new(big.Int).Add(r.Num(), r.Denom())
	n.Sub(n, big.NewInt(1))
	return n.Div(n, r.Denom()).Int64()
}
