package hybrid

import (
	"log/slog"
	"time"
)

// TableFull says that a key was asked for that is not remembered, because
// [WithMaxKeys] others are that cannot be forgotten yet. Redis decides about such keys
// one request at a time, and in an outage they share a fixed number of buckets. It
// is told once a minute at most; Stats.Untracked counts the requests.
type TableFull struct {
	At   time.Time
	Keys int // that are remembered
}

// When implements [Event].
func (e TableFull) When() time.Time { return e.At }

func (e TableFull) attrs() (slog.Level, string, []slog.Attr) {
	return slog.LevelWarn, "rate limiter table full", []slog.Attr{slog.Int("keys", e.Keys)}
}

// overflow notes a request of a key that has no room.
func (l *Limiter) overflow() {
	l.counts.untracked.Add(1)
	if now := time.Now(); l.reminder.due(tableFull, now) {
		l.events.push(TableFull{At: now, Keys: l.keys.Len()})
	}
}
