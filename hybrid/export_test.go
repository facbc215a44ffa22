package hybrid

import (
	"sync/atomic"
	"time"
)

// Sleep makes the wall clock of a limiter jump, as a suspended machine's does in
// the eyes of the monotonic clock. It is for a limiter that is not yet used.
func Sleep(l *Limiter) (jump func(time.Duration)) {
	var by atomic.Int64
	wall := l.watch.wall
	l.watch.wall = func() time.Time { return wall().Add(time.Duration(by.Load())) }
	return func(d time.Duration) { by.Add(int64(d)) }
}

// Unannounced keeps a limiter from announcing itself, so that its calls are those
// for keys. Tests of the fleet do without.
func Unannounced() Option { return func(c *config) { c.alone = true } }

// Announced undoes Unannounced.
func Announced() Option { return func(c *config) { c.alone = false } }
