package load

import (
	"fmt"
	"math/rand/v2"
)

// sequence is the length of a sequence of keys, a power of two; a goroutine goes
// round and round in it.
const sequence = 1 << 16

// Hot is a sequence of one key.
func Hot() []string { return []string{"hot"} }

// Names are n different keys.
func Names(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("user:%06d", i)
	}
	return names
}

// Zipf draws a sequence from names, the first of which is the most frequent: the
// k-th is drawn in proportion to k^-s, s > 1. One seed gives one sequence.
func Zipf(names []string, s float64, seed uint64) []string {
	z := rand.NewZipf(rand.New(rand.NewPCG(seed, 1)), s, 1, uint64(len(names)-1))
	keys := make([]string, sequence)
	for i := range keys {
		keys[i] = names[z.Uint64()]
	}
	return keys
}
