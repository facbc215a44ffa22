// Package lua holds the scripts that run inside Redis: of the token bucket one file
// per operation, of each other algorithm one for all. The header of each file is its
// wire contract; the package remote speaks it.
//
// All scripts share the text of bucket.lua, which describes the state of a key
// and the invariant that the scripts of the bucket keep. Those that count in windows
// share window.lua besides.
package lua

import (
	"crypto/sha1" // the name that Redis gives a script, not a safeguard
	_ "embed"
	"encoding/hex"
	"strings"
)

// Format is the version of the messages and of the stored state. A script that
// meets a state of a newer format changes nothing and says so.
const Format = 1

// A Script is the text of one operation and the name Redis caches it under.
type Script struct {
	name, text, sha string
}

// Name is the operation, for errors and counters: "acquire".
func (s *Script) Name() string { return s.name }

// Text is what EVAL takes.
func (s *Script) Text() string { return s.text }

// SHA is what EVALSHA takes: the SHA-1 of Text in hexadecimal.
func (s *Script) SHA() string { return s.sha }

var (
	//go:embed bucket.lua
	bucket string
	//go:embed window.lua
	window string
	//go:embed tiers.lua
	tiers string

	//go:embed acquire.lua
	acquire string
	//go:embed peek.lua
	peek string
	//go:embed reset.lua
	reset string

	//go:embed leaky_bucket.lua
	leakyBucket string
	//go:embed fixed_window.lua
	fixedWindow string
	//go:embed sliding_log.lua
	slidingLog string
	//go:embed rolling_window.lua
	rollingWindow string

	//go:embed announce.lua
	announce string
)

// The operations on the token bucket.
var (
	Acquire = newScript("acquire", bucket, acquire)
	Peek    = newScript("peek", bucket, peek)
	Reset   = newScript("reset", bucket, reset)
)

// Announce counts the instances of a limiter.
var Announce = newScript("announce", bucket, announce)

// An Algorithm is the scripts of one way to limit. All take the same messages.
type Algorithm struct {
	Acquire, Peek, Reset *Script
	// Suffix ends the names of its keys, so that no state is read by the scripts of
	// another one.
	Suffix string
	// Timed: a reply says how long until what was refused fits, see window.lua. For
	// a bucket that follows from the level and the rate.
	Timed bool
}

// The algorithms; the header of each script says what it bounds.
var (
	TokenBucket   = &Algorithm{Acquire: Acquire, Peek: Peek, Reset: Reset}
	LeakyBucket   = &Algorithm{Acquire: newScript("acquire", bucket, leakyBucket), Peek: Peek, Reset: Reset, Suffix: ":leaky"}
	FixedWindow   = timed(":fixed", fixedWindow)
	SlidingLog    = timed(":log", slidingLog)
	RollingWindow = timed(":rolling", rollingWindow)
)

// Tiers are several token buckets under one key.
var Tiers = &Algorithm{
	Acquire: newScript("acquire", bucket, tiers, acquire),
	Peek:    newScript("peek", bucket, tiers, peek),
	Reset:   newScript("reset", bucket, tiers, reset),
	Suffix:  ":tiers", Timed: true,
}

// MaxLog is the largest limit that a sliding log counts: its members take memory.
const MaxLog = 10_000

// timed is an algorithm whose one script knows all operations.
func timed(suffix, text string) *Algorithm {
	op := func(name string) *Script { return newScript(name, bucket, window, text) }
	return &Algorithm{Acquire: op("acquire"), Peek: op("peek"), Reset: op("reset"), Suffix: suffix, Timed: true}
}

func newScript(name string, texts ...string) *Script {
	text := strings.Join(texts, "\n")
	sum := sha1.Sum([]byte(text))
	return &Script{name: name, text: text, sha: hex.EncodeToString(sum[:])}
}
