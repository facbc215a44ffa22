package luahost

import "strconv"

// origin is the clock of a new world, in microseconds: 2026, beyond 10^15.
const origin = int64(1_767_225_600_123_456)

// unit is one token in micro-tokens.
const unit = 1_000_000

// A limit in the units of the scripts.
type limit struct{ num, den, burst, version int64 }

func (l limit) args() []any {
	return texts(lua1, l.num, l.den, l.burst, l.version)
}

// lua1 is the format of messages that the tests send.
const lua1 = 1

// A need is a run of equal requests, in micro-tokens.
type need struct {
	tokens, count int64
	queue         bool
}

// A message to acquire. Amounts are micro-tokens, ttl is microseconds.
type message struct {
	id                    string
	seq                   int64
	limit                 limit
	ttl                   int64
	kept, returned, spent int64
	most, burst           int64 // the largest rate, and the burst that goes with it
	demand, want, least   int64
	charge, seen          int64 // the latter: 0 if nothing is known
	live, peak            int64
	needs                 []need
}

func (m message) args() []any {
	l := m.limit
	args := append([]any{"1", m.id}, texts(m.seq, l.num, l.den, l.burst, l.version,
		m.ttl, m.kept, m.most, m.burst, m.returned, m.spent, m.demand, m.want, m.least,
		m.charge, m.seen-1, max(1, m.live), max(1, m.live, m.peak), 0)...)
	for _, n := range m.needs {
		queue := int64(0)
		if n.queue {
			queue = 1
		}
		args = append(args, texts(n.tokens, n.count, queue)...)
	}
	return args
}

// texts are numbers as the client sends them.
func texts(numbers ...int64) []any {
	args := make([]any, len(numbers))
	for i, n := range numbers {
		args[i] = strconv.FormatInt(n, 10)
	}
	return args
}
