package lua_test

import (
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/resilient-go/limiter/local"
)

// No window of length w admits more than burst + rate·w where holders meter
// themselves, each by its own clock, and spend as soon as they can, whatever is
// lost or late. A clock that is fast by a tenth adds a tenth of what the rate is
// worth in a lease.
func TestNoWindowAdmitsMoreThanBurstAndRateWithRates(t *testing.T) {
	for name, fastest := range map[string]int64{"clocks right or slow": 1000, "clocks fast": 1100} {
		t.Run(name, func(t *testing.T) {
			t.Run("miniredis", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newMini(t)
					rapid.Check(inBubble{t}, func(rt *rapid.T) { fleet(rt, s, fastest) })
				})
			})
			t.Run("redis-server", func(t *testing.T) {
				s := newReal(t)
				rapid.Check(t, func(rt *rapid.T) { fleet(rt, s, fastest) })
			})
		})
	}
}

// A member is a holder with the lease that production has.
type member struct {
	id      string
	speed   int64 // of its clock, per mille
	seq     int64
	lease   *local.Lease
	kept    int64 // tokens, as last reported
	sent    int64 // instant of its clock
	waiting bool  // for the answer to message seq
	dead    bool
}

// A post is a message or an answer on its way.
type post struct {
	to   *member
	msg  metered
	sent int64
	kept int64
}

type reply struct {
	post
	answer answer
}

// A gauge is the bucket that all that is admitted must pass.
type gauge struct {
	l           limit
	more        int64 // micro-tokens beyond the burst
	level, last int64 // in units of 1/den micro-tokens
}

func (g *gauge) admit(w *world, amount int64) {
	w.Helper()
	g.level = max(0, g.level-(w.now-g.last)*g.l.num) + amount*g.l.den
	g.last = w.now
	if most := (g.l.burst + g.more) * g.l.den; g.level > most {
		w.Fatalf("%d micro-tokens beyond burst and rate were admitted", (g.level-most)/g.l.den)
	}
}

func fleet(t *rapid.T, s server, fastest int64) {
	w := newWorld(t, s, "fleet")
	w.client().Del(w.Context(), w.key, "ttl "+w.key)
	l := per(rapid.Int64Range(40, 5000).Draw(t, "count"), rapid.SampledFrom([]time.Duration{
		time.Second, 3 * time.Second, 1900 * time.Millisecond,
	}).Draw(t, "period"), rapid.Int64Range(5, 500).Draw(t, "burst"))
	const ttl = time.Second
	g := &gauge{l: l, more: l.top() * (fastest - 1000) / 1000, last: w.now}
	members := make([]*member, rapid.IntRange(1, 5).Draw(t, "members"))
	for i := range members {
		members[i] = &member{
			id: string(rune('a' + i)), lease: new(local.Lease),
			speed: rapid.SampledFrom([]int64{fastest, fastest, 1000, 900}).Draw(t, "speed"),
		}
	}
	clock := func(h *member) int64 { return (w.now - origin) * h.speed }
	var messages []post
	var answers []reply
	for range rapid.IntRange(20, 200).Draw(t, "steps") {
		switch rapid.IntRange(0, 3).Draw(t, "pace") {
		case 0:
		case 1:
			w.move(rapid.Int64Range(1, 10_000).Draw(t, "us of a way"))
		default:
			w.move(rapid.Int64Range(1, 250_000).Draw(t, "us"))
		}
		h := rapid.SampledFrom(members).Draw(t, "member")
		switch op := rapid.IntRange(0, 9).Draw(t, "operation"); {
		case op <= 2: // spend all there is, past the lock and with it
			for h.dead = h.dead || rapid.IntRange(0, 99).Draw(t, "dies") == 0; !h.dead; {
				n := rapid.Int64Range(1, 1+h.lease.Balance(clock(h))).Draw(t, "n")
				if _, _, took := h.lease.Take(clock(h), n); !took && !h.lease.TakeLate(clock(h), n) {
					if n = 1; !h.lease.TakeLate(clock(h), 1) {
						break
					}
				}
				g.admit(w, n*unit)
			}
		case op <= 5 && !h.dead && (!h.waiting || rapid.IntRange(0, 3).Draw(t, "gives up") == 0):
			p := h.report(t, l, ttl, clock(h))
			if rapid.IntRange(0, 9).Draw(t, "message lost") > 0 {
				messages = append(messages, p)
			}
		case op <= 7 && len(messages) > 0:
			i := rapid.IntRange(0, len(messages)-1).Draw(t, "message")
			p := messages[i]
			messages = append(messages[:i], messages[i+1:]...)
			a := w.meter(p.msg)
			if a.status != ok {
				continue
			}
			for i, n := range p.msg.needs {
				if a.granted[i] > 0 {
					g.admit(w, a.granted[i]*n.n*unit)
				}
			}
			if rapid.IntRange(0, 9).Draw(t, "answer lost") > 0 {
				answers = append(answers, reply{p, a})
			}
		case len(answers) > 0:
			i := rapid.IntRange(0, len(answers)-1).Draw(t, "answer")
			r := answers[i]
			answers = append(answers[:i], answers[i+1:]...)
			r.to.receive(r, clock(r.to))
		}
	}
}

// report is the next message of a member: a renewal, or all of it back.
func (h *member) report(t *rapid.T, l limit, ttl time.Duration, now int64) post {
	h.seq++
	m := metered{message: message{id: h.id, seq: h.seq, limit: l, ttl: ttl}}
	if rapid.IntRange(0, 7).Draw(t, "returns all") == 0 {
		held, part, spent, _ := h.lease.Remove(now)
		m.returned, m.spent = held*unit+part, spent*unit
		h.kept = 0
	} else {
		kept, spent, _ := h.lease.Report(now)
		m.kept, m.spent = kept*unit+h.lease.Part(), spent*unit
		m.want = rapid.Int64Range(1, 2*l.burst/unit).Draw(t, "want") * unit
		m.least = rapid.Int64Range(0, m.want/unit).Draw(t, "least") * unit
		m.demand = rapid.Int64Range(1, 3*l.top()).Draw(t, "demand")
		m.rate, m.burst = l.top(), l.burst
		for range rapid.IntRange(0, 2).Draw(t, "needs") {
			m.needs = append(m.needs, need{
				n: rapid.OneOf(rapid.Just(int64(1)), rapid.Int64Range(1, l.burst/unit)).Draw(t, "n"), count: rapid.Int64Range(1, 50).Draw(t, "count"),
				queue: rapid.Bool().Draw(t, "queues"),
			})
		}
		h.kept = kept
	}
	h.sent, h.waiting = now, true
	return post{to: h, msg: m, sent: now, kept: h.kept}
}

// receive takes an answer in; one that is not to the last message is void.
func (h *member) receive(r reply, now int64) {
	if h.dead || !h.waiting || r.answer.seq != h.seq {
		return
	}
	h.waiting = false
	ttl := r.answer.ttl * 1000
	h.lease.Grant(r.kept, r.answer.lump/unit, r.sent+ttl/5, r.sent+ttl*9/10, 0)
	h.lease.Metered(r.answer.rate, r.answer.burst, r.sent, now)
}
