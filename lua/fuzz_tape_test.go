package lua_test

import (
	"math/big"
	"time"
)

// A tape gives the fuzzer's bytes as numbers, and zeros at its end.
type tape []byte

func (t *tape) byte() byte {
	if len(*t) == 0 {
		return 0
	}
	b := (*t)[0]
	*t = (*t)[1:]
	return b
}

// upTo is from 0 to most, in all orders of magnitude.
func (t *tape) upTo(most int64) int64 {
	size, a, b := t.byte(), t.byte(), t.byte()
	n := (int64(a)<<8 | int64(b)) << (size % 45) >> 8
	return n % (most + 1)
}

// limit is one within the numbers that the scripts allow, mostly one that is worth
// sharing.
func (t *tape) limit() limit {
	if t.byte()%4 > 0 {
		l := per(10+t.upTo(100_000), time.Second, 1+t.upTo(20_000))
		l.version = int64(t.byte() % 4)
		return l
	}
	l := per(1+t.upTo(1_000_000_000), periods[int(t.byte())%len(periods)], 1)
	l.version = int64(t.byte() % 4)
	if most := new(big.Int).Sub(big.NewInt(1<<53-1), big.NewInt(l.num)); l.num > 0 {
		most.Div(most, new(big.Int).Mul(big.NewInt(2*unit), big.NewInt(l.den)))
		if l.burst = min(1+t.upTo(1_000_000_000), most.Int64()) * unit; l.burst > 0 && l.exact() {
			return l
		}
	}
	return per(100, time.Second, 50)
}

// pause is how much time passes, in microseconds: mostly a part of a horizon, and
// now and then anything in both directions.
func (t *tape) pause() int64 {
	switch t.byte() % 8 {
	case 0:
		return 0
	case 1:
		return -t.upTo(3_600_000_000)
	case 2:
		return t.upTo(400 * 24 * 3600 * 1_000_000)
	case 3:
		return t.upTo(40_000_000)
	default:
		return t.upTo(400_000)
	}
}

// spoken is what a holder says: the truth about what it holds, or anything that
// fits the protocol.
func (h *claimant) spoken(t *tape, l limit) metered {
	m := metered{message: message{id: h.id, seq: h.seq + 1, limit: l}}
	m.ttl = time.Second
	if t.byte()%4 == 0 {
		m.ttl = time.Duration(1+t.upTo(40_000_000)) * time.Microsecond
	}
	m.spent = t.upTo(h.hold)
	m.returned = t.upTo(h.hold - m.spent)
	m.kept = h.hold - m.spent - m.returned
	const anything = 1<<53 - 1
	switch t.byte() % 16 {
	case 0:
		m.kept = t.upTo(anything)
	case 1:
		m.returned = t.upTo(anything)
	case 2:
		m.spent = t.upTo(anything)
	case 3:
		m.kept, m.returned, m.spent = t.upTo(anything), t.upTo(anything), t.upTo(anything)
	case 4:
		m.seq = t.upTo(anything)
	}
	m.demand = min(t.upTo(2*l.top()), 1<<50)
	if t.byte()%4 > 0 {
		m.want = t.upTo(2 * l.burst)
		m.least = t.upTo(min(m.want, 8*unit))
	}
	if t.byte()%4 > 0 {
		m.rate, m.burst = l.top(), l.burst
	} else {
		m.rate, m.burst = t.upTo(l.top()), t.upTo(l.burst)
	}
	sizes := [...]int64{2, 10, 100, 1 << 40}
	for range t.byte() % 4 {
		m.needs = append(m.needs, need{n: 1 + t.upTo(l.burst/unit+1)%sizes[t.byte()%4], count: t.upTo(20), queue: t.byte()%2 == 0})
	}
	if kinds := t.byte(); kinds%2 == 1 { // other kinds of needs
		m.reserve = t.upTo(999)
		for i := range m.needs {
			m.needs[i].low, m.needs[i].book, m.needs[i].hold = int(kinds>>1)%4 == i, int(kinds>>3)%4 == i, int(kinds>>5)%4 == i
		}
	}
	return m
}
