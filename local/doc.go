// Package local decides without the network.
//
// It holds what one instance knows by itself: the share of a limit that it may
// take at most ([Share]), the permits it has been lent ([Lease]), the demand it
// sees ([Demand]), the quota it falls back on when Redis is gone ([Quota]), and
// the bounded table of keys that all of them live in ([Table]).
//
// Everything here is pure: no clock is read and no goroutine is started. An
// instant is a number of nanoseconds on a monotonic clock that the caller
// chooses, and it is passed in. Unless a method says otherwise, the caller
// holds the lock of the key.
package local
