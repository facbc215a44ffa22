package lua_test

import (
	"math/big"
	"slices"
)

// A model is what one of the other algorithms does, in exact arithmetic and with
// everything remembered. n tokens per period of so many microseconds.
type model interface {
	copy() model
	// at brings the model to an instant of the server's clock.
	at(now int64)
	// left is how many tokens there are.
	left() int64
	// take takes that many.
	take(n int64)
	// give takes tokens back, as far as the algorithm does.
	give(n int64)
	// fits is how long until n tokens fit, 0 if they do; reset until all is free.
	fits(n int64) int64
	reset() int64
}

// An entryAt is what was admitted at an instant.
type entryAt struct{ at, n int64 }

// fixedModel: a window begins with the first request after the end of the last.
type fixedModel struct{ n, period, now, start, count int64 }

func (m *fixedModel) copy() model { c := *m; return &c }

func (m *fixedModel) at(now int64) {
	m.now = now
	m.start = min(m.start, now)
	if m.count == 0 || now >= m.start+m.period {
		m.start, m.count = now, 0
	}
}
func (m *fixedModel) left() int64  { return m.n - m.count }
func (m *fixedModel) take(n int64) { m.count += n }
func (m *fixedModel) give(n int64) { m.count = max(0, m.count-n) }
func (m *fixedModel) fits(n int64) int64 {
	if n <= m.left() {
		return 0
	}
	return m.start + m.period - m.now
}

func (m *fixedModel) reset() int64 {
	if m.count == 0 {
		return 0
	}
	return m.start + m.period - m.now
}

// logModel: what was admitted at t has left at t + period. Its clock does not go back
// while anything is listed.
type logModel struct {
	n, period, now, skew int64
	list                 []entryAt
}

func (m *logModel) copy() model { c := *m; return &c }

func (m *logModel) at(now int64) {
	if len(m.list) > 0 {
		m.skew = max(m.skew, m.list[len(m.list)-1].at-now)
	}
	m.now = now + m.skew
	for len(m.list) > 0 && m.list[0].at+m.period <= m.now {
		m.list = m.list[1:]
	}
	if len(m.list) == 0 {
		m.skew, m.now = 0, now
	}
}

func (m *logModel) left() int64 {
	left := m.n
	for _, a := range m.list {
		left -= a.n
	}
	return left
}

func (m *logModel) take(n int64) {
	if n > 0 {
		m.list = append(m.list, entryAt{m.now, n})
	}
}

func (*logModel) give(int64) {} // nobody knows of which entry it is

func (m *logModel) fits(n int64) int64 {
	left := m.left()
	for _, a := range m.list {
		if left >= n {
			break
		}
		if left += a.n; left >= n {
			return a.at + m.period - m.now
		}
	}
	return 0
}

func (m *logModel) reset() int64 {
	if len(m.list) == 0 {
		return 0
	}
	return m.list[len(m.list)-1].at + m.period - m.now
}

// rollingModel: counters of a tenth of the period, the first of which begins with the
// first request. The one that the period cuts counts in part, in whole thousandths,
// rounded up, and whole tokens, rounded down.
type rollingModel struct {
	n, period, now, start, skew int64
	list                        []entryAt // at: the number of the counter
}

func (m *rollingModel) width() int64 { return (m.period + 9) / 10 }

func (m *rollingModel) copy() model {
	c := *m
	c.list = slices.Clone(m.list)
	return &c
}

func (m *rollingModel) at(now int64) {
	if len(m.list) == 0 {
		m.start, m.skew = now, 0
	} else {
		m.skew = max(m.skew, m.start+m.list[len(m.list)-1].at*m.width()-now)
	}
	m.now = now + m.skew
	for len(m.list) > 0 && m.start+(m.list[0].at+1)*m.width()+m.period <= m.now {
		m.list = m.list[1:]
	}
	if len(m.list) == 0 {
		m.start, m.skew, m.now = now, 0, now
	}
}

// leftAt is what is left after that much more time.
func (m *rollingModel) leftAt(wait int64) int64 {
	left, from := m.n, m.now+wait-m.period-m.start
	for _, a := range m.list {
		begin, end := a.at*m.width(), (a.at+1)*m.width()
		switch {
		case end <= from:
		case begin >= from:
			left -= a.n
		default:
			part := new(big.Rat).SetFrac64(1000*(end-from), m.width())
			left -= ceil(part) * a.n / 1000
		}
	}
	return left
}

func (m *rollingModel) left() int64 { return m.leftAt(0) }

func (m *rollingModel) take(n int64) {
	number := (m.now - m.start) / m.width()
	if last := len(m.list) - 1; last >= 0 && m.list[last].at == number {
		m.list[last].n += n
	} else if n > 0 {
		m.list = append(m.list, entryAt{number, n})
	}
}

func (m *rollingModel) give(n int64) {
	number := (m.now - m.start) / m.width()
	if last := len(m.list) - 1; last >= 0 && m.list[last].at == number {
		if m.list[last].n -= min(n, m.list[last].n); m.list[last].n == 0 {
			m.list = m.list[:last]
		}
	}
}

// fits looks for the least wait, between what is too short and what is enough.
func (m *rollingModel) fits(n int64) int64 {
	if n <= m.left() {
		return 0
	}
	low, high := int64(0), m.reset()
	for high-low > 1 {
		if middle := low + (high-low)/2; m.leftAt(middle) >= n {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

func (m *rollingModel) reset() int64 {
	if len(m.list) == 0 {
		return 0
	}
	return m.start + (m.list[len(m.list)-1].at+1)*m.width() + m.period - m.now
}
