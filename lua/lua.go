// Package lua holds the scripts that run inside Redis, one file per operation.
// The header of each file is its wire contract; the package remote speaks it.
//
// All scripts share the text of bucket.lua, which describes the state of a key
// and the invariant that the scripts keep.
package lua

import (
	"crypto/sha1" // the name that Redis gives a script, not a safeguard
	_ "embed"
	"encoding/hex"
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

//go:embed bucket.lua
var bucket string

//go:embed acquire.lua
var acquire string

//go:embed peek.lua
var peek string

//go:embed reset.lua
var reset string

// The operations.
var (
	Acquire = newScript("acquire", acquire)
	Peek    = newScript("peek", peek)
	Reset   = newScript("reset", reset)
)

func newScript(name, text string) *Script {
	text = bucket + "\n" + text
	sum := sha1.Sum([]byte(text))
	return &Script{name: name, text: text, sha: hex.EncodeToString(sum[:])}
}
