package sim

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// A rootCheck looks at the root after each script: tokens and rights out together
// are the burst at most, the rates of the leases together the rate, the sums that
// are kept are those of the leases that are kept, every number is an integer that
// Lua counts exactly, and the key has an end.
type rootCheck struct{ s *schedule }

const exactly = 1 << 53

func (c *rootCheck) check(p *Post) {
	s, r := c.s, c.s.rootNow()
	if !r.there {
		s.wrong("a script left nothing behind")
		return
	}
	if ttl := s.w.Redis.TTL(s.redisKey()); ttl <= 0 {
		s.wrong("the key has no end: %v", ttl)
	}
	number := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n >= exactly || n <= -exactly {
			s.wrong("%q is no integer below 2^53", text)
		}
		return n
	}
	// The sums: rights out, rates, demand, leases, and their parts in an outage.
	var sums, kept [5]int64
	for i, name := range []string{"o", "p", "d", "k", "q"} {
		if text := r.fields[name]; text != "" { // 0 is left out
			kept[i] = number(text)
		}
	}
	for name, text := range r.fields {
		if name != "l" && !strings.HasPrefix(name, "h") {
			number(text)
			continue
		}
		var n []int64
		for _, part := range strings.Fields(text) {
			n = append(n, number(part))
		}
		switch {
		case name == "l":
		case len(n) != 8:
			s.wrong("the lease %q is %q", name, text)
		default:
			for i, x := range []int64{max(n[1], n[3]), n[2], n[6], 1, n[7]} {
				sums[i] += x
			}
		}
	}
	if sums != kept || sums[4] > 1e6 {
		s.wrong("the root has sums of %d where the leases have %d", kept, sums)
	}
	out, rates := sums[0], sums[1]
	tokens := number(r.fields["t"])
	if tokens < -r.micro {
		s.wrong("a debt of %d is above the burst of %d", -tokens, r.micro)
	}
	if s.settledLimit() {
		if tokens+out > r.micro && out > 0 || tokens > r.micro {
			s.wrong("the root has %d tokens and %d out, of a burst of %d", tokens, out, r.micro)
		}
		if rates*r.den > r.num*1e6 {
			s.wrong("the leases have rates of %d together, of a limit of %d/%d", rates, r.num, r.den)
		}
	}
	c.account(p)
	s.rich.check(r, p)
}

// settledLimit reports whether no lease can be of a limit that was larger than the
// one in use.
func (s *schedule) settledLimit() bool {
	return !s.has(limits) || s.w.Now() > s.books.settled+3*s.longest
}

// account notes what the additions to the bound go by: the longest lease, and how
// long the holders of rates are from one script to the next.
func (c *rootCheck) account(p *Post) {
	reply, ok := p.Reply.([]any)
	if !ok || len(reply) < 12 || reply[1] != "0" && reply[1] != "3" {
		return
	}
	s, m := c.s, c.s.of(p.From)
	ttl, _ := strconv.ParseInt(reply[11].(string), 10, 64)
	s.longest = max(s.longest, time.Duration(ttl)*time.Microsecond)
	s.books.longest = s.longest
	if m.last > 0 {
		s.books.gap = max(s.books.gap, s.w.Now()-m.last)
	}
	m.last = 0
	if reply[9] != "0" {
		m.last = max(1, s.w.Now())
	}
	s.books.fast = math.Max(s.books.fast, p.From.Drift)
	switch {
	case reply[9] != "0":
		s.seen["rates"]++
	case reply[8] != "0":
		s.seen["lumps"]++
	}
}
