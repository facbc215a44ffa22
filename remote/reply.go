package remote

import (
	"strconv"
	"time"

	"github.com/resilient-go/limiter/lua"
)

// Statuses of a reply, see acquire.lua.
const (
	statusOK = iota
	statusNewer
	statusStale
	statusOther // under another limit than was asked for
)

const (
	levelFields  = 7
	answerFields = 14
	limitFields  = 4       // at the end, of statusOther
	maxExact     = 1 << 53 // beyond it Lua's numbers are not integers any more
	longest      = 1 << 52 // microseconds that anybody is told to wait
)

// Decode reads the reply of acquire to a message.
func (m *Message) Decode(reply any) (Answer, error) { return m.decode(reply, false, 0) }

// decode reads the reply of any algorithm: one that is timed tells more, and with
// further tiers what each of these holds.
func (m *Message) decode(reply any, timed bool, tiers int) (Answer, error) {
	v, limit, err := open(reply, m.Limit)
	if err != nil {
		return Answer{}, err
	}
	needs, want := len(m.Needs), answerFields+len(m.Needs)
	if timed {
		want += needs + 1 + tiers
	}
	if len(v) != want {
		return Answer{}, protocol("%d values instead of %d", len(v), want)
	}
	a := Answer{
		Level: level(v, limit), Seq: uint64(v[7]), Lump: v[8], Rate: v[9], Burst: v[10],
		TTL: time.Duration(v[11]) * time.Microsecond, Part: v[12], Lost: v[13]%2 != 0, Beyond: v[13] / 2,
		Granted: v[answerFields : answerFields+needs],
	}
	missing := v[13]
	if timed {
		a.Fits, v = v[answerFields+needs:want-1-tiers], v[want-1-tiers:]
		a.Timed, a.Reset, a.Tiers = true, time.Duration(v[0])*time.Microsecond, v[1:]
	}
	most := m.Kept + m.Want
	for i, g := range a.Granted {
		n := m.Needs[i]
		switch {
		case g < 0 || g > n.Count:
			return Answer{}, protocol("%d requests granted of %d", g, n.Count)
		case n.Hold:
			most += g * n.Tokens
		}
	}
	switch {
	case a.Seq != m.Seq:
		return Answer{}, protocol("the answer to message %d instead of %d", a.Seq, m.Seq)
	case missing < 0 || a.Beyond > max(0, m.Charge) && !timed:
		return Answer{}, protocol("%d of a charge of %d are beyond the debt", a.Beyond, m.Charge)
	case a.Part < 0 || a.Part > Whole:
		return Answer{}, protocol("a part of %d millionths", a.Part)
	case a.Lump < 0 || a.Lump > most, a.Rate < 0 || a.Rate > m.Rate, a.Burst < 0 || a.Burst > m.Burst, a.TTL < 0 || a.TTL > m.TTL:
		return Answer{}, protocol("a lease of %d for %v where %d was held and %d asked for", a.Lump, a.TTL, m.Kept, m.Want)
	}
	for i, g := range a.Granted {
		if timed && (a.Fits[i] < 0 || a.Fits[i] == 0 && g < m.Needs[i].Count || a.Fits[i] > longest) {
			return Answer{}, protocol("%d us until more than %d of %d fit", a.Fits[i], g, m.Needs[i].Count)
		}
	}
	if err := a.Level.check(); err != nil {
		return Answer{}, err
	}
	return a, nil
}

// decodeLevel reads the reply of peek and reset.
func decodeLevel(reply any, limit Limit, timed bool) (Level, error) {
	v, limit, err := open(reply, limit)
	if err != nil {
		return Level{}, err
	}
	want := levelFields
	if timed {
		want += 2
	}
	if len(v) != want {
		return Level{}, protocol("%d values instead of %d", len(v), want)
	}
	l := level(v, limit)
	if timed {
		if v[7] < 0 || v[7] > longest {
			return Level{}, protocol("%d us until one fits", v[7])
		}
		l.Timed, l.Fits, l.Reset = true, time.Duration(v[7])*time.Microsecond, time.Duration(v[8])*time.Microsecond
	}
	if err := l.check(); err != nil {
		return Level{}, err
	}
	return l, nil
}

// decodeFleet reads the reply of announce.
func decodeFleet(reply any) (Fleet, error) {
	v, err := integers(reply)
	switch {
	case err != nil:
		return Fleet{}, err
	case len(v) != 4 || v[0] != lua.Format:
		return Fleet{}, protocol("%d values of a fleet", len(v))
	case v[1] == statusNewer:
		return Fleet{}, errNewer
	case v[1] != statusOK || v[2] < 0 || v[3] < v[2]:
		return Fleet{}, protocol("status %d, and %d of %d instances", v[1], v[2], v[3])
	}
	return Fleet{Live: int(v[2]), Peak: int(v[3])}, nil
}

func level(v []int64, limit Limit) Level {
	return Level{
		Limit: limit, Tokens: v[2], Out: v[3], LastEnd: time.Duration(v[4]) * time.Microsecond,
		Rates: v[5], Demand: v[6],
	}
}

// check refuses a level that the scripts cannot produce.
func (l Level) check() error {
	if l.Tokens > l.Limit.Burst || l.Tokens < -l.Limit.Burst || l.Out < 0 || l.LastEnd < 0 || l.Rates < 0 || l.Demand < 0 || l.Reset < 0 || l.Reset > longest*time.Microsecond {
		return protocol("impossible level %+v of a burst of %d", l, l.Limit.Burst)
	}
	return nil
}

// open reads what all replies have in common, and gives the rest and the limit
// that applies.
func open(reply any, asked Limit) (v []int64, applies Limit, err error) {
	v, err = integers(reply)
	switch {
	case err != nil:
		return nil, asked, err
	case len(v) < levelFields:
		return nil, asked, protocol("%d values", len(v))
	case v[0] != lua.Format:
		return nil, asked, protocol("an answer of format %d", v[0])
	}
	switch v[1] {
	case statusOK:
		return v, asked, nil
	case statusNewer:
		return nil, asked, errNewer
	case statusStale:
		return nil, asked, errStale
	case statusOther:
		return other(v)
	default:
		return nil, asked, protocol("unknown status %d", v[1])
	}
}

// other takes the limit from the end of a reply.
func other(v []int64) ([]int64, Limit, error) {
	n := len(v) - limitFields
	if n < levelFields {
		return nil, Limit{}, protocol("%d values, and another limit among them", len(v))
	}
	l := Limit{Num: v[n], Den: v[n+1], Burst: v[n+2], Version: v[n+3]}
	if l.Num < 1 || l.Den < 1 || l.Burst < 1 || l.Version < 0 {
		return nil, Limit{}, protocol("impossible limit %+v", l)
	}
	return v[:n], l, nil
}

// integers reads an array of integers as strings. Nothing else is taken: a
// number in another form has passed through somebody's floating point.
func integers(reply any) ([]int64, error) {
	array, ok := reply.([]any)
	if !ok {
		return nil, protocol("%T instead of an array", reply)
	}
	v := make([]int64, len(array))
	for i, e := range array {
		s, ok := e.(string)
		if !ok {
			return nil, protocol("%T instead of a string at %d", e, i)
		}
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n >= maxExact || n <= -maxExact {
			return nil, protocol("%.40q instead of an integer at %d", s, i)
		}
		v[i] = n
	}
	return v, nil
}
