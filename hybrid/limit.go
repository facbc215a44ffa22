package hybrid

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/resilient-go/limiter/local"
)

// A Limit is a rate and a burst: a token bucket that starts full, holds at most
// burst tokens and gains n tokens per period. In every window of length w it
// admits at most burst + w·n/period.
//
// Limits are comparable values. The zero Limit is invalid; [New] says so. The
// burst is n unless [Limit.WithBurst] sets another one.
//
// The text form is "100/s", "7/3s", "1000/h burst 50": see [ParseLimit]. Two
// limits are no bucket: [Unlimited] and [Blocked].
type Limit struct {
	n      int64
	period time.Duration
	burst  int64
}

// Limits that are no bucket. Requests are decided here ([SourceRule]) and Redis
// is not asked.
var (
	// Unlimited admits everything.
	Unlimited = Limit{n: -1, burst: math.MaxInt64}
	// Blocked refuses everything.
	Blocked = Limit{n: -1}
)

// Per is a limit of n per period. Fractions are kept: Per(7, 3*time.Second) is
// exactly that and not 2.333 per second.
func Per(n int, period time.Duration) Limit {
	return Limit{n: int64(n), period: period, burst: int64(n)}
}

// PerSecond is a limit of n per second.
func PerSecond(n int) Limit { return Per(n, time.Second) }

// PerMinute is a limit of n per minute.
func PerMinute(n int) Limit { return Per(n, time.Minute) }

// PerHour is a limit of n per hour.
func PerHour(n int) Limit { return Per(n, time.Hour) }

// WithBurst returns the limit with another burst: how many may pass at once
// after a quiet time.
func (l Limit) WithBurst(burst int) Limit {
	l.burst = int64(burst)
	return l
}

// Count is the n of n per period; -1 for Unlimited and Blocked.
func (l Limit) Count() int { return int(l.n) }

// Period is the time in which the bucket gains Count tokens.
func (l Limit) Period() time.Duration { return l.period }

// Burst is the most that may pass at once.
func (l Limit) Burst() int { return int(min(l.burst, math.MaxInt)) }

// String is the text form, which [ParseLimit] reads.
func (l Limit) String() string {
	switch l {
	case Unlimited:
		return "unlimited"
	case Blocked:
		return "blocked"
	}
	s := strconv.FormatInt(l.n, 10) + "/" + periodText(l.period)
	if l.burst != l.n {
		s += " burst " + strconv.FormatInt(l.burst, 10)
	}
	return s
}

// MarshalText implements [encoding.TextMarshaler] with the form of String.
func (l Limit) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler] with [ParseLimit], so that
// limits can be read from JSON, YAML and flags.
func (l *Limit) UnmarshalText(text []byte) error {
	parsed, err := ParseLimit(string(text))
	if err == nil {
		*l = parsed
	}
	return err
}

// ParseLimit reads a limit such as "100/s", "100/s burst 20", "7/3s",
// "1000/1h30m" or "5/d". The period is a unit (s, m, h, d) or a duration as
// [time.ParseDuration] takes it, with days allowed as in "30d". It also reads
// "unlimited" and "blocked". The error is a
// [*ConfigError] that says what is wrong; a limit that it returns is valid.
func ParseLimit(text string) (Limit, error) {
	bad := func(why string) (Limit, error) {
		return Limit{}, &ConfigError{Field: "Limit", Reason: fmt.Sprintf("%q: %s; want for example \"100/s\" or \"1000/1h burst 50\"", text, why)}
	}
	switch text {
	case "unlimited":
		return Unlimited, nil
	case "blocked":
		return Blocked, nil
	}
	fields := strings.Fields(text)
	if len(fields) != 1 && (len(fields) != 3 || fields[1] != "burst") {
		return bad("not of the form COUNT/PERIOD [burst BURST]")
	}
	count, period, ok := strings.Cut(fields[0], "/")
	if !ok {
		return bad("there is no /")
	}
	n, err := strconv.Atoi(count)
	if err != nil {
		return bad("the count is not an integer, or is too large")
	}
	d, err := parsePeriod(period)
	if err != nil {
		return bad("the period is not a unit (s, m, h, d) or a duration (500ms, 1h30m, 7d)")
	}
	l := Per(n, d)
	if len(fields) == 3 {
		b, err := strconv.Atoi(fields[2])
		if err != nil {
			return bad("the burst is not an integer")
		}
		l = l.WithBurst(b)
	}
	_, err = l.units()
	if err != nil {
		return Limit{}, err
	}
	return l, nil
}

const day = 24 * time.Hour

func parsePeriod(s string) (time.Duration, error) {
	switch s {
	case "s":
		return time.Second, nil
	case "m":
		return time.Minute, nil
	case "h":
		return time.Hour, nil
	case "d":
		return day, nil
	}
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseInt(days, 10, 32)
		if err == nil && n > int64(1<<63-1)/int64(day) {
			err = strconv.ErrRange
		}
		return time.Duration(n) * day, err
	}
	return time.ParseDuration(s)
}

func periodText(d time.Duration) string {
	switch {
	case d == time.Second:
		return "s"
	case d == time.Minute:
		return "m"
	case d == time.Hour:
		return "h"
	case d == day:
		return "d"
	case d > 0 && d%day == 0:
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// units is a limit in the units of the packages below: integers whose products
// stay exact in Lua.
type units struct {
	rate  local.Rate
	burst int64 // tokens
}

// exact is where Lua's numbers stop being integers.
const exact = 1 << 53

// units validates the limit.
func (l Limit) units() (units, error) {
	switch {
	case l == Limit{}:
		return units{}, &ConfigError{Field: "Limit", Reason: "no limit was given; want for example PerSecond(100) or the text \"100/s\""}
	case l.n <= 0:
		return units{}, &ConfigError{Field: "Limit", Reason: fmt.Sprintf("the rate must be positive, not %d per %v", l.n, l.period)}
	case l.period <= 0:
		return units{}, &ConfigError{Field: "Limit", Reason: fmt.Sprintf("the period must be positive, not %v", l.period)}
	case l.burst < 1:
		return units{}, &ConfigError{Field: "Limit", Reason: fmt.Sprintf("the burst must be at least 1, not %d", l.burst)}
	}
	// n tokens per period = n·10^9 micro-tokens per (period in ns) µs.
	ratio := new(big.Rat).SetFrac(
		new(big.Int).Mul(big.NewInt(l.n), big.NewInt(1_000_000_000)),
		big.NewInt(int64(l.period)))
	num, den := ratio.Num(), ratio.Denom()
	// The scripts form (burst − tokens)·den, where tokens may be a debt of burst.
	worst := new(big.Int).Mul(big.NewInt(2*local.Unit), big.NewInt(l.burst))
	worst.Mul(worst, den)
	worst.Add(worst, num)
	if worst.Cmp(big.NewInt(exact)) >= 0 {
		return units{}, &ConfigError{Field: "Limit", Reason: fmt.Sprintf(
			"%v needs numbers up to %v in Redis, beyond 2^53 = %d where they are exact; lower the burst or choose a count and period with a common divisor", l, worst, int64(exact))}
	}
	return units{rate: local.Rate{Num: num.Int64(), Den: den.Int64()}, burst: l.burst}, nil
}
