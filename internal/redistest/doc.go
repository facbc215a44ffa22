// Package redistest gives tests Redis servers that can be broken on purpose.
//
// # The servers
//
//   - [Bubble] is miniredis inside a testing/synctest bubble: the client talks
//     to it over an in-memory connection, and time-outs, key expiry and TIME
//     all follow the bubble's fake clock. Nothing waits in real time, so
//     assertions on durations are exact.
//   - [MiniTCP] is miniredis on a loopback TCP port, in real time.
//   - [Server] is a redis-server process on a loopback port.
//   - [Cluster] is a redis-server process that owns all slots of a Cluster.
//   - [Sentinel] is a master, a replica and three sentinels.
//
// Everything that a constructor starts is ended by the Cleanup of its test:
// clients, goroutines and processes. The constructors that need redis-server
// fail the test if it is not installed; they never skip it.
//
// A program that shows something gives them an [Owner] in place of a test.
//
// # The proxy
//
// Between each server, except those of Sentinel, and its clients stands a
// [Proxy] that understands the Redis protocol. For every connection it takes
// the client's commands in order, gives them to the server one at a time, and
// sends the replies back in the same order; the client may pipeline as much as
// it wants. A fault therefore hits one command, not a connection full of them.
//
// The switches come in two groups, which together are the [Switches]. Those of
// the server (Kill, Freeze, Thaw, RestartEmpty, RestartWithData, ScriptFlush)
// do the real thing on a redis-server process: signals and a new process. On
// miniredis the proxy imitates what a client sees of it. Those of the network
// (Delay, DropReplies, FailWith, FailNext, Partition) are the proxy's own and
// work alike everywhere; Heal undoes all of them. The group matters to Heal
// and to a restart only: Heal does not thaw a frozen server, and a restart
// ends a freeze but heals no network.
//
// A command that a client sent to a frozen or partitioned server is not lost.
// As with a real socket it waits, and the server runs it when it can, even if
// its client gave up in the meantime.
//
// [Counts] tell what the clients sent and what the server really ran, which is
// how a test proves that something happened exactly once, or not at all.
//
// The proxy carries request and reply. It refuses Pub/Sub and MONITOR.
//
// # Use in a bubble
//
//	synctest.Test(t, func(t *testing.T) {
//		r := redistest.Bubble(t)
//		c := r.Client(func(o *redis.Options) {
//			o.MaxRetries = -1
//			o.ReadTimeout = 50 * time.Millisecond
//		})
//		r.Freeze()
//		start := time.Now()
//		err := c.Get(t.Context(), "key").Err() // a time-out ...
//		_ = time.Since(start)                  // ... after exactly 50ms
//	})
//
// Switches may be used from any goroutine of the test, except that those which
// restart something report failure with Fatal and so belong to the goroutine
// that runs the test.
package redistest
