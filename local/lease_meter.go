package local

import (
	"math/bits"
	"time"
)

// Metered gives the lease a rate and a burst, as the answer to the report of
// the instant sent has it, after Grant. For the time that the message travelled
// it makes up at the lower of the old rate and the new one, because the root has
// counted with the old one first and then with the new one.
func (l *Lease) Metered(rate, burst, sent, now int64) {
	l.paused = false
	l.rate, l.burst, l.since, l.rest = min(l.rate, rate), burst, sent, 0
	l.earn(now)
	l.rate, l.since, l.rest = rate, now, 0
	l.level = l.balance.Load() + l.claimed.Load()
	l.metered.Store(rate > 0)
}

func (l *Lease) unmeter() {
	l.rate, l.part, l.paused = 0, 0, false
	l.metered.Store(false)
}

// Rate is the rate in micro-tokens per second.
func (l *Lease) Rate() int64 { return l.rate }

// Meter reports whether n tokens will be earned by the rate of the lease, and how
// long that takes: at least one nanosecond.
func (l *Lease) Meter(n, now int64) (time.Duration, bool) {
	if l.rate == 0 || n*Unit > l.burst || now >= l.end {
		return 0, false
	}
	if !l.paused {
		l.earn(now)
	}
	missing := n*Unit - l.balance.Load()*Unit - l.part
	hi, lo := bits.Mul64(uint64(max(0, missing)), 1e9)
	if hi >= uint64(l.rate) {
		return 0, false
	}
	d, rest := bits.Div64(hi, lo, uint64(l.rate))
	if rest > 0 {
		d++
	}
	return time.Duration(min(max(1, d), uint64(ages))), true
}

// Paused reports whether the root has been told of the lease and has not
// answered: it earns nothing.
func (l *Lease) Paused() bool { return l.paused }

// Part is what is held besides the balance, less than a token, in micro-tokens,
// as of the last Report.
func (l *Lease) Part() int64 { return l.part }

// Scrap gives up the part, and returns it, if there is no rate by which it would
// become a token: kept, it would be missing at the root for ever.
func (l *Lease) Scrap() (part int64) {
	if l.rate == 0 {
		part, l.part = l.part, 0
	}
	return part
}

// Earned is how many whole tokens were earned since it was last asked.
func (l *Lease) Earned() int64 {
	n := l.earned
	l.earned = 0
	return n
}

// earn puts what the rate was worth until now into the balance. There was room for
// no more than since the last time: what was taken meanwhile may have been taken
// just now, from a lease that was full, which earns nothing.
func (l *Lease) earn(now int64) {
	if l.rate == 0 || l.paused {
		return
	}
	now = min(now, l.end)
	if now <= l.since {
		if now == l.since {
			l.level = l.balance.Load() + l.claimed.Load() // what was taken since was taken at this instant
		}
		return
	}
	gain, rest := l.gain(now)
	l.since, l.rest = now, rest
	l.part += gain
	if whole := l.part / Unit; whole > 0 {
		l.part %= Unit
		l.balance.Add(whole)
		l.told += whole
		l.earned += whole
	}
	l.level = l.balance.Load() + l.claimed.Load()
}

// gain is what the rate is worth from since until now, and the rest.
func (l *Lease) gain(now int64) (gain int64, rest uint64) {
	hi, lo := bits.Mul64(uint64(l.rate), uint64(now-l.since))
	lo, carry := bits.Add64(lo, l.rest, 0)
	worth, rest := bits.Div64(hi+carry, lo, 1e9) // the rate is below 2^53, the time below 2^35
	if room := max(0, l.burst-l.level*Unit-l.part); worth >= uint64(room) {
		return room, 0
	}
	return int64(worth), rest
}

// Worth is what could be spent at now, in micro-tokens: what is held, and what was
// earned since that was last counted. While the lease is paused that is what it will
// earn if the answer is as good.
func (l *Lease) Worth(now int64) int64 {
	if now >= l.end {
		return 0
	}
	worth := l.balance.Load()*Unit + l.part
	if l.rate > 0 && now > l.since {
		gain, _ := l.gain(now)
		worth += gain
	}
	return worth
}
