package remote

import (
	"strconv"
	"time"

	"github.com/resilient-go/limiter/lua"
)

// Unit is how many micro-tokens one token is. All amounts of this package are
// micro-tokens, all rates are in micro-tokens per microsecond as a fraction, so
// that 7 per 3 s is exactly that.
const Unit = 1_000_000

// Whole is the whole of a limit in the unit of its parts.
const Whole = 1_000_000

// MaxNeeds is how many runs of equal requests one message carries.
const MaxNeeds = 32

// A Limit is a rate and a burst in the units of the scripts. Every product that
// the scripts form from it must stay below 2^53; hybrid.Limit sees to that.
type Limit struct {
	Num, Den int64 // micro-tokens per microsecond
	Burst    int64 // micro-tokens
	Version  int64
}

// A Need is a run of equal requests that wait for a decision.
type Need struct {
	Tokens int64 // micro-tokens each
	Count  int64
	Queue  bool // they queue rather than leave: nobody behind them passes first
	Low    bool // they leave the reserve of the bucket alone
	Book   bool // they may take it into a debt of one burst
	Hold   bool // what they are granted becomes lease, and is spent from there
}

// Like reports whether both are needs of the same kind and size.
func (n Need) Like(o Need) bool {
	n.Count = o.Count
	return n == o
}

// A Message states what a holder really holds of a key, what it returns and
// what it would like. The lease recorded at the root is replaced by it.
type Message struct {
	Key      string // as Key gives it
	Limit    Limit
	Seq      uint64 // growing, per holder
	TTL      time.Duration
	Kept     int64
	Returned int64
	Spent    int64 // since the last message
	Demand   int64 // micro-tokens per second
	Want     int64
	Least    int64 // the smallest lump worth having
	Rate     int64 // the largest rate it may have, micro-tokens per second; 0: none
	Burst    int64 // the largest burst that goes with it
	// Charge is taken from the bucket, down to a debt of one burst; a negative one is
	// given back as far as there is room.
	Charge int64
	// Until is how long the window lasts that what is given back was counted in, of
	// algorithms that count in windows. They know no rates, which Until stands for.
	Until time.Duration
	// Seen is the most that the bucket can hold by what was last heard of it, if
	// Known and less than the burst: a bucket that is missing was lost, and goes on
	// from there.
	Seen  int64
	Known bool
	// Live instances reach the server, of Peak that lately did. 0 stands for 1.
	Live, Peak int64
	// Reserve is how many thousandths of the bucket low needs and the lump leave
	// alone.
	Reserve int64
	Needs   []Need
}

// A Level is what the root bucket holds. Tokens may be negative: a debt.
type Level struct {
	Limit   Limit // that applies: another one than was asked for, if instances disagree
	Tokens  int64
	Out     int64         // rights out on lease
	LastEnd time.Duration // until the last lease ends at the latest
	Rates   int64         // sum of the rates of rate leases, micro-tokens per second
	Demand  int64         // sum of the demand of the holders, micro-tokens per second

	// Of algorithms that tell the time:
	Timed bool          // the reply did
	Fits  time.Duration // of Peek and Reset: until one token fits; 0: it does
	Reset time.Duration // until all is free if nobody asks
}

// A Fleet is how many instances of a limiter reach Redis, and the most that lately
// did.
type Fleet struct{ Live, Peak int }

// An Answer is the reply to a Message.
type Answer struct {
	Level
	Seq     uint64
	Lump    int64         // held now, of what was kept and what was granted
	Rate    int64         // at which the holder earns more, micro-tokens per second
	Burst   int64         // up to which it does
	TTL     time.Duration // what is left of the lease; 0 if there is none
	Part    int64         // of the limit, in millionths, for an outage that begins before the lease ends
	Lost    bool          // the bucket was missing although it cannot have been full
	Beyond  int64         // of the Charge, that lies beyond the debt of one burst
	Granted []int64       // how many of each Need
	Fits    []int64       // if it is timed: microseconds until one more of each Need fits; 0: all were granted
	Tiers   []int64       // what each holds, micro-tokens, if there are further ones
}

// Args encodes a message of a holder; the header of acquire.lua is the contract.
func (m *Message) Args(holder string) []any {
	seen := int64(-1)
	if m.Known {
		seen = max(0, m.Seen)
	}
	rate := m.Rate
	if m.Until > 0 {
		rate = max(1, m.Until.Microseconds())
	}
	args := make([]any, 0, 3+22+3*len(m.Needs))
	args = append(args,
		num(lua.Format), holder, strconv.FormatUint(m.Seq, 10),
		num(m.Limit.Num), num(m.Limit.Den), num(m.Limit.Burst), num(m.Limit.Version),
		num(m.TTL.Microseconds()), num(m.Kept), num(rate), num(m.Burst),
		num(m.Returned), num(m.Spent), num(m.Demand), num(m.Want), num(m.Least),
		num(m.Charge), num(seen), num(max(1, m.Live)), num(max(1, m.Live, m.Peak)), num(m.Reserve))
	for _, n := range m.Needs {
		args = append(args, num(n.Tokens), num(n.Count), num(n.flags()))
	}
	return args
}

func (n Need) flags() (sum int64) {
	for i, set := range [...]bool{n.Queue, n.Low, n.Book, n.Hold} {
		if set {
			sum += 1 << i
		}
	}
	return sum
}

func (l Limit) args(algorithm *lua.Algorithm, op *lua.Script) []any {
	args := []any{num(lua.Format), num(l.Num), num(l.Den), num(l.Burst), num(l.Version)}
	if algorithm.Timed {
		args = append(args, op.Name())
	}
	return args
}

// withTiers adds what tiers.lua takes besides.
func withTiers(args []any, tiers []Limit) []any {
	if len(tiers) == 0 {
		return args
	}
	for _, t := range tiers {
		args = append(args, num(t.Num), num(t.Den), num(t.Burst))
	}
	return append(args, num(int64(len(tiers))))
}

func num(n int64) string { return strconv.FormatInt(n, 10) }
