package luahost

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/resilient-go/limiter/lua"
)

// A holder is a holder as it sees itself on one key.
type holder struct {
	id         string
	seq        int64
	hold, rate int64
}

// limits that courses use: small, fractional, slow, fast.
var limits = []limit{
	{num: 10, den: 1, burst: 10 * unit},
	{num: 100, den: 1, burst: 100 * unit, version: 3},
	{num: 7, den: 3, burst: 70 * unit},
	{num: 1000, den: 1, burst: 20 * unit},
	{num: 1, den: 60_000_000, burst: 5 * unit},
	{num: 1_000_000, den: 1, burst: 1_000_000 * unit, version: 1 << 40},
}

// courses runs so many courses against a peer, each from its own seed.
func courses(t *testing.T, p peer, n int) {
	if full {
		n *= 50
	}
	seen := map[string]int{}
	for seed := range uint64(n) {
		w := newWorld(t, p, seen)
		w.seed = seed
		w.course(rand.New(rand.NewPCG(seed, 1)), 80)
	}
	for _, kind := range kinds {
		if seen[kind] < 3 {
			t.Errorf("%d courses met %q %d times, want at least 3: %v", n, kind, seen[kind], seen)
		}
	}
}

// course sends random messages of several holders on two keys, at random times.
func (w *world) course(r *rand.Rand, steps int) {
	holders := map[string][]*holder{}
	for _, key := range w.keys {
		for _, id := range []string{"a", "b", "c", "0f1e2d3c4b5a6978", "e"} {
			holders[key] = append(holders[key], &holder{id: id})
		}
	}
	l := anyOf(r, limits...)
	for range steps {
		w.move(anyPause(r))
		key := anyOf(r, w.keys...)
		switch r.IntN(60) {
		case 0:
			l = anyOf(r, limits...)
			w.seen["new limits"]++
		case 1, 2, 3:
			w.eval(lua.Peek, key, l.args())
			w.seen["peeks"]++
		case 4:
			w.eval(lua.Reset, key, l.args())
			w.seen["resets"]++
		case 5:
			w.host.Drop(key)
			w.peer.drop(key)
			w.seen["dropped"]++
			w.compare("a key was dropped")
		default:
			w.send(r, key, anyOf(r, holders[key]...), l)
		}
	}
}

// anyPause draws how much time passes, in microseconds.
func anyPause(r *rand.Rand) int64 {
	longest := anyOf[int64](r, 0, 10, 1000, 100_000, 100_000, 1_000_000, 1_000_000, 12_000_000, 100_000_000)
	return upTo(r, longest)
}

// send draws a message of a holder, sends it, and lets the holder have the answer.
func (w *world) send(r *rand.Rand, key string, h *holder, l limit) {
	m := message{id: h.id, seq: h.seq + 1, limit: l}
	m.ttl = 500_000 + upTo(r, 30_500_000)
	m.spent = upTo(r, h.hold)
	m.returned = upTo(r, h.hold-m.spent)
	m.kept = h.hold - m.spent - m.returned
	switch r.IntN(20) {
	case 0:
		m.kept += upTo(r, l.burst)
	case 1:
		m.spent += upTo(r, l.burst)
	case 2, 3:
		m.seq -= upTo(r, 3)
	}
	m.demand = upTo(r, 2*1_000_000*l.num/l.den)
	if r.IntN(4) > 0 {
		m.want = upTo(r, 2*l.burst)
		m.least = upTo(r, 4*unit)
		m.most = upTo(r, 1_000_000*l.num/l.den)
		m.burst = upTo(r, l.burst)
	}
	for range r.IntN(4) {
		m.needs = append(m.needs, need{
			tokens: (1 + upTo(r, 2)) * anyOf[int64](r, unit, unit, l.burst/2),
			count:  upTo(r, 30), queue: r.IntN(2) == 0,
		})
	}
	if r.IntN(4) == 0 {
		m.charge = upTo(r, l.burst) * anyOf[int64](r, 1, -1)
	}
	if r.IntN(3) == 0 {
		m.seen = 1 + upTo(r, l.burst)
	}
	if r.IntN(2) == 0 {
		m.live = 1 + upTo(r, 5)
		m.peak = m.live + upTo(r, 5)
	}
	args := m.args()
	switch r.IntN(90) {
	case 0: // of a newer format
		args[0] = "2"
	case 1:
		args[2+r.IntN(len(args)-2)] = anyOf[any](r, "", "x", "1e", "-", " ")
	case 2:
		args = args[:r.IntN(len(args))]
	case 3: // numbers that the client has as such
		args[2], args[8] = int(m.seq), m.kept
	}
	before := w.host.Fields(key)
	reply := w.eval(lua.Acquire, key, args)
	w.observe(before, w.host.Fields(key), m, reply)
	if len(reply) < 14 {
		return
	}
	h.seq = m.seq
	h.hold, h.rate = integer(reply[8]), integer(reply[9])
	if h.rate > 0 { // by the time of the next message it may have earned as much
		h.hold = h.hold + upTo(r, max(0, integer(reply[10])-h.hold))
	}
	if r.IntN(10) == 0 {
		h.hold = m.kept
	}
}

// observe counts what a course met.
func (w *world) observe(before, after map[string]string, m message, reply []any) {
	count := func(kind string, met bool) {
		if met {
			w.seen[kind]++
		}
	}
	if reply == nil {
		return
	}
	count("newer", reply[1] == "1")
	count("stale", reply[1] == "2")
	if len(reply) < 14 {
		return
	}
	count("lumps", integer(reply[8]) > m.kept)
	count("rates", integer(reply[9]) > 0)
	count("returned", m.returned > 0)
	count("charged", m.charge > 0)
	count("credited", m.charge < 0)
	count("parts", integer(reply[12]) > 0)
	count("lost", reply[13] == "1")
	count("reserved", m.live < m.peak)
	for i, n := range m.needs {
		if 14+i < len(reply) {
			count("granted", integer(reply[14+i]) > 0)
			count("refused", integer(reply[14+i]) < n.count)
		}
	}
	still := false
	gone := false
	for _, field := range sorted(before) {
		if strings.HasPrefix(field, "h") && field != "h"+m.id {
			_, there := after[field]
			still, gone = still || there, gone || !there
		}
	}
	count("sweeps", still && gone)
}

// anyOf draws one of several.
func anyOf[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// upTo draws from 0 to n.
func upTo(r *rand.Rand, n int64) int64 { return r.Int64N(n + 1) }

func integer(v any) int64 {
	n, err := strconv.ParseInt(v.(string), 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}
