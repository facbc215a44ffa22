package lua_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/resilient-go/limiter/lua"
)

// A fuzzed world runs a tape.
type fuzzed struct {
	*world
	asked   limit
	holders []*claimant

	last    answer // of the last script, at this instant or before,
	applies limit  // and under which limit that was
}

func (f *fuzzed) step(t *tape) {
	f.sleep(t.pause())
	switch t.byte() % 24 {
	case 0:
		f.asked = t.limit()
	case 1: // a smaller burst, of the same version or the next
		f.asked.burst = max(unit, t.upTo(f.asked.burst))
		f.asked.version += int64(t.byte() % 2)
	case 2:
		if f.run(lua.Reset, f.asked.args(), -1); f.last.status == ok {
			f.checkRates(f.applies, f.last)
		}
	case 3:
		f.unchanged(func() { f.run(lua.Peek, f.asked.args(), -1) })
	default:
		h := f.holders[int(t.byte())%len(f.holders)]
		f.say(h, h.spoken(t, f.asked), t.byte()%8 > 0)
	}
}

// run runs a script. It takes an answer under another limit apart, into the answer
// and that limit.
func (f *fuzzed) run(s *lua.Script, args []any, needs int) {
	f.Helper()
	reply, err := f.eval(s, f.key, args)
	if err != nil {
		f.Fatalf("%s: %v", s.Name(), err)
	}
	array, l := reply.([]any), f.asked
	if len(array) >= 11 && array[1] == "3" {
		end := len(array) - 4
		if _, err := fmt.Sscan(strings.Trim(fmt.Sprint(array[end:]), "[]"), &l.num, &l.den, &l.burst, &l.version); err != nil {
			f.Fatalf("the limit of the reply %v: %v", array, err)
		}
		if l == f.asked {
			f.Fatalf("another limit applies, and it is the same: %v", array)
		}
		array = slices.Clone(array[:end])
		array[1] = "0"
	}
	f.last, f.applies = read(f, array, needs), l
}

// sleep moves the clock. The root gains no more meanwhile than its limit is worth,
// less what the leases earn.
func (f *fuzzed) sleep(us int64) {
	if f.now+us >= 8_000_000_000_000_000 {
		return
	}
	before, l := f.last, f.applies
	lived := f.ttl(f.key) > us/1000
	f.move(us)
	f.run(lua.Peek, f.asked.args(), -1)
	if f.applies != l || before.status != ok || !lived {
		return
	}
	worth := new(big.Rat).Mul(l.rate(), rat(max(0, us)))
	if us <= before.lastEnd {
		lent := new(big.Rat).Mul(big.NewRat(before.rates, unit), rat(max(0, us)))
		if worth.Sub(worth, lent); worth.Sign() < 0 {
			worth.SetInt64(0)
		}
	}
	if gain := rat(f.last.tokens - before.tokens); gain.Cmp(worth.Add(worth, rat(2))) > 0 { // rounded twice
		f.Fatalf("in %d us the root went from %+v to %+v under %+v", us, before, f.last, l)
	}
}

// say has a holder send a message, whose answer it gets or not.
func (f *fuzzed) say(h *claimant, m metered, arrives bool) {
	before, l := f.last, f.applies
	there, lent := f.lumps(h.id, m.ttl)
	f.run(lua.Acquire, m.args(), len(m.needs))
	a := f.last
	if a.status != ok {
		return
	}
	if f.applies != l {
		f.Fatalf("peek says %+v applies, and acquire %+v", l, f.applies)
	}
	f.checkRates(l, a)
	spendable, _ := f.lumps("", 0)
	spendable += a.tokens
	for i, n := range m.needs {
		if a.granted[i] < 0 || a.granted[i] > n.count {
			f.Fatalf("%d of %d were granted", a.granted[i], n.count)
		}
		if !n.hold { // it is in the lump
			spendable += a.granted[i] * n.n * unit
		}
	}
	if spendable > before.tokens+there+lent {
		f.Fatalf("%d + %d could be spent before, and %d were earned; %d after: %+v, %+v", before.tokens, there, lent, spendable, m, a)
	}
	if a.lump > there+lent+max(0, before.tokens) || a.rate > m.rate || a.burst > max(m.burst, 0) || (a.rate > 0) != (a.burst > 0) {
		f.Fatalf("%+v was granted on %+v", a, m)
	}
	if a.rate > 0 && a.rates > l.top() {
		f.Fatalf("a rate of %d was granted beyond the limit: %d of %d", a.rate, a.rates, l.top())
	}
	h.seq, h.hold = m.seq, m.kept
	if arrives {
		h.hold = a.lump + a.burst/2
	}
}

// lumps is what can be spent of the recorded leases, and what the one of a holder
// can have earned. Of one with a rate that has ended, a twentieth of the next lease
// is not charged as overspent: it may have been under way.
func (f *fuzzed) lumps(id string, ttl time.Duration) (sum, earned int64) {
	for field, text := range f.state() {
		var seq, lump, rate, burst, end, length, demand int64
		if !strings.HasPrefix(field, "h") {
			continue
		}
		if _, err := fmt.Sscan(text, &seq, &lump, &rate, &burst, &end, &length, &demand); err != nil {
			f.Fatalf("lease %s is %q: %v", field, text, err)
		}
		lasted := max(0, min(f.now, end)-end+length)
		switch own := field == "h"+id; {
		case end > f.now && own:
			sum += lump
			earned = ceil(new(big.Rat).Mul(big.NewRat(rate, unit), rat(lasted)))
		case end > f.now:
			sum += lump
		case own:
			earned = ceil(new(big.Rat).Mul(big.NewRat(rate, unit), rat(ttl.Microseconds()/20)))
		}
	}
	return sum, earned
}

// Whatever is said to the scripts, by several holders and with any course of the
// clock: the state is whole, its sums are those of the leases, the key lives for as
// long as it is needed, nothing is granted that was not there, and the root gains
// no more than its rate.
func FuzzScripts(f *testing.F) {
	rnd := rand.New(rand.NewPCG(1, 2))
	seeds := 400
	if full {
		seeds = 4000
	}
	for range seeds {
		data := make([]byte, 1+rnd.IntN(800))
		for i := range data {
			data[i] = byte(rnd.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tape := tape(data)
		w := &fuzzed{world: newWorld(t, newHost(), "fuzz"), holders: []*claimant{{id: "a"}, {id: "b"}, {id: "c"}, {id: "d"}}}
		w.asked = tape.limit()
		for len(tape) > 0 {
			w.step(&tape)
		}
	})
}
