package lua_test

import (
	"slices"
	"testing"
	"testing/synctest"
)

// A scenario runs on every server, with the same numbers.
type scenario struct {
	name string
	run  func(w *world)
}

var scenarios = slices.Concat(counting, leases, sweeping, clocks, lifetimes, limits, governing, gracing, formats, refusals, kinds, outages, fleets)

func TestScriptsOnMiniredis(t *testing.T) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { s.run(newWorld(t, newMini(t), s.name)) })
		})
	}
}

func TestScriptsOnRedis(t *testing.T) {
	server := newReal(t)
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			server.TB = t
			s.run(newWorld(t, server, s.name))
		})
	}
}
