package lua_test

import (
	"math/big"
	"regexp"
	"strconv"
	"time"
)

// unit is one token in micro-tokens.
const unit = 1_000_000

// A limit in the units of the scripts.
type limit struct{ num, den, burst, version int64 }

// per is a limit of n tokens per period, with the burst in tokens.
func per(n int64, period time.Duration, burst int64) limit {
	num := new(big.Int).Mul(big.NewInt(n), big.NewInt(1e9))
	r := new(big.Rat).SetFrac(num, big.NewInt(int64(period)))
	return limit{num: r.Num().Int64(), den: r.Denom().Int64(), burst: burst * unit}
}

// exact reports whether the limit keeps to the numbers that the scripts allow.
func (l limit) exact() bool {
	worst := new(big.Int).Mul(big.NewInt(2*l.burst), big.NewInt(l.den))
	worst.Add(worst, big.NewInt(l.num))
	return worst.Cmp(big.NewInt(1<<53)) < 0
}

func (l limit) args() []any { return []any{1, l.num, l.den, l.burst, l.version} }

// newer is the limit with the next version, so that it wins over an older one.
func (l limit) newer() limit {
	l.version++
	return l
}

// rate is micro-tokens per microsecond.
func (l limit) rate() *big.Rat { return big.NewRat(l.num, l.den) }

// A need is a run of equal requests, in tokens.
type need struct {
	n, count               int64
	queue, low, book, hold bool
}

func (n need) flags() (sum int64) {
	for i, set := range []bool{n.queue, n.low, n.book, n.hold} {
		if set {
			sum += 1 << i
		}
	}
	return sum
}

// A message to acquire. Amounts are micro-tokens.
type message struct {
	id                    string
	seq                   int64
	limit                 limit
	ttl                   time.Duration
	kept, returned, spent int64
	demand, want, least   int64
	charge                int64
	until                 int64 // us, of what the charge gives back
	seen                  int64 // if known
	known                 bool
	live, peak            int64 // 0: 1
	reserve               int64
	needs                 []need
}

// ask is a message that asks for n tokens count times and holds nothing.
func ask(l limit, n, count int64) message {
	return message{id: "asker", seq: 1, limit: l, ttl: time.Second, needs: []need{{n: n, count: count}}}
}

// lump is a message that asks for a lump of that many tokens.
func lump(l limit, id string, seq, tokens int64) message {
	return message{id: id, seq: seq, limit: l, ttl: time.Second, want: tokens * unit}
}

func (m message) args() []any {
	args := []any{
		1, m.id, m.seq, m.limit.num, m.limit.den, m.limit.burst, m.limit.version,
		m.ttl.Microseconds(), m.kept, m.until, 0, m.returned, m.spent, m.demand, m.want, m.least,
		m.charge, -1, max(1, m.live), max(1, m.live, m.peak), m.reserve,
	}
	if m.known {
		args[17] = m.seen
	}
	for _, n := range m.needs {
		args = append(args, n.n*unit, n.count, n.flags())
	}
	return args
}

// The statuses of a reply.
const (
	ok int64 = iota
	newer
	stale
	other // under another limit than was asked for
)

// An answer is a reply of any script; peek and reset leave the second half empty.
type answer struct {
	applies limit // with the status other

	status, tokens, out, lastEnd, rates, demand int64
	seq, lump, rate, burst, ttl                 int64
	part                                        int64
	lost                                        bool
	beyond                                      int64
	granted                                     []int64
}

var integer = regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`)

// done reports whether the script did what it was asked to.
func (a answer) done() bool { return a.status == ok || a.status == other }

// under is the limit that applies where l was asked for.
func (a answer) under(l limit) limit {
	if a.status == other {
		return a.applies
	}
	return l
}

// read decodes a reply strictly: integers as strings, and as many as the header
// of the script says.
func read(t tb, reply any, needs int) answer {
	t.Helper()
	array, isArray := reply.([]any)
	if !isArray {
		t.Fatalf("reply %v (%T), want an array", reply, reply)
	}
	v := make([]int64, len(array))
	for i, e := range array {
		s, isString := e.(string)
		if !isString || !integer.MatchString(s) {
			t.Fatalf("value %d of the reply is %v (%T), want an integer as a string: %v", i, e, e, array)
		}
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n >= 1<<53 || n <= -1<<53 {
			t.Fatalf("value %d of the reply is %s, want it within ±2^53", i, s)
		}
		v[i] = n
	}
	if len(v) < 7 || v[0] != 1 {
		t.Fatalf("reply %v, want at least 7 values and format 1", v)
	}
	a := answer{status: v[1], tokens: v[2], out: v[3], lastEnd: v[4], rates: v[5], demand: v[6]}
	if last := len(v) - 4; a.status == other && last >= 7 {
		a.applies = limit{num: v[last], den: v[last+1], burst: v[last+2], version: v[last+3]}
		v = v[:last]
	}
	switch {
	case needs < 0 || a.status != ok && a.status != other:
		if len(v) != 7 {
			t.Fatalf("reply of %d values, want 7: %v", len(v), v)
		}
	case len(v) != 14+needs:
		t.Fatalf("reply of %d values, want %d: %v", len(v), 14+needs, v)
	case v[12] < 0 || v[12] > 1_000_000 || v[13] < 0:
		t.Fatalf("a part of %d, and lost is %d: %v", v[12], v[13], v)
	default:
		a.seq, a.lump, a.rate, a.burst, a.ttl = v[7], v[8], v[9], v[10], v[11]
		a.part, a.lost, a.beyond, a.granted = v[12], v[13]%2 == 1, v[13]/2, v[14:]
	}
	return a
}
